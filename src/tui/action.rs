//! What a key or the mouse can ask for.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    Record,
    Keep,
    /// Closes what lies on top: help, an error; else clears the selection.
    Back,
    /// Opens or closes the help.
    Help,
    /// Opens the list of errors, of lost records, of races.
    Troubles,
    /// Shows how the jobs of this machine stand.
    Job,
    /// Goes to a view: index into [`VIEWS`](super::view::VIEWS).
    Show(usize),
    /// Goes to the view at a place of the bar, from 0.
    ShowNth(usize),
    /// Goes on by so many views, or back.
    View(isize),
    /// Follows the newest data, or stops following.
    Follow,
    /// Holds the picture still, or lets it go on.
    Pause,
    /// Zooms in around the cursor, or with -1 out.
    Zoom(i32),
    /// Moves the window towards the end, or the start.
    Pan(i32),
    PanStart,
    PanEnd,
    /// Shows all there is in scope.
    Fit,
    ZoomToSelection,
    Up,
    Down,
    PageUp,
    PageDown,
    /// The first line of a list.
    First,
    /// Its last line.
    Last,
    /// The next operation of the lane, or with -1 the one before.
    Operation(isize),
    /// The next gap of the lane, or the one before.
    Gap(isize),
    /// The longest gap of what is in view; again the next one.
    LongestGap,
    /// The next variant, or the one before.
    Variant(isize),
    /// The same variant at the next value of the sweep, or at the one before.
    Point(isize),
    /// The next step of the program, of a scenario the next pass of the variant; or the one before.
    Step(isize),
    /// A step, counted from 0.
    ToStep(usize),
    /// One pass at a time, or the whole run.
    WholeRun,
    /// Shows more or fewer counters of the hardware.
    Counters,
    /// Opens the prediction of a finding under the timeline, or closes it.
    Predict,
    /// Orders the table by its next column.
    Sort,
    /// Back to where the last jump came from.
    Return,
    /// Forward again.
    Forward,
    /// Sets a mark; the second one measures.
    Mark,
    /// From a host call to its operation, and back.
    OtherEnd,
    /// Copies what is selected, a name whole.
    Copy,
    /// Folds the group of the selected row, or unfolds it.
    FoldLanes,
    ShowLanes,
    /// Opens the line that says which lanes to show.
    FilterLanes,
    /// Opens the line that says what to look for.
    Find,
    /// Looks for the name under the cursor.
    FindThis,
    /// The next one of what is looked for, or the one before.
    Hit(isize),
    /// Adds a character to the line that is being typed.
    Type(char),
    /// Takes its last character away.
    Erase,
    Rerun,
    Stop,
    /// Saves the screen as SVG and as text.
    Save,
    /// Opens the editor at the source line under the cursor, else with the scenario.
    Edit,
    /// Takes what is under the cursor of a list.
    Choose,
    /// Selects what is at a place of the screen.
    Click {
        x: u16,
        y: u16,
    },
    /// Measures what is between two columns; from the axis it drags the window.
    Drag {
        /// Where the button was pressed: column and row of the screen.
        from: (u16, u16),
        /// The column it is at now.
        x: u16,
        /// Columns towards the end of the screen.
        columns: i16,
    },
    /// Zooms around a column.
    Wheel {
        x: u16,
        y: u16,
        /// Towards the picture.
        is_in: bool,
    },
}

/// Where a key is pressed. A binding of the context goes before one of [`Context::Any`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Context {
    /// Everywhere.
    #[default]
    Any,
    Timeline,
    /// On the timeline, while something is looked for; what is not bound here means what it does there.
    Found,
    /// While a line is typed.
    Prompt,
    /// On all that has lines: lists and the picker.
    Lines,
    /// On lists: the operations table, findings, log, output.
    List,
    /// In the picker of scenarios.
    Picker,
}
