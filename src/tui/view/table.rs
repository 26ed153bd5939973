//! The columns of a table on the screen: those that there is room for.

use super::list::Cell;
use crate::report::table::Column;
use crate::tui::theme::Role;

/// Columns with their widths.
pub(super) struct TableLayout<R>(Vec<Column<R>>);

impl<R> TableLayout<R> {
    /// Those that fit; two columns stand before each, and the last of the screen is left free.
    pub(super) fn new(mut columns: Vec<Column<R>>, width: u16) -> Self {
        columns.retain(|it| it.width > 0);
        let used = |all: &[Column<R>]| all.iter().map(|it| it.width + 2).sum::<u16>() + 1;
        while used(&columns) > width
            && let Some(spare @ 1..) = columns.iter().map(|it| it.spare).max()
        {
            columns.retain(|it| it.spare < spare);
        }
        let used = used(&columns);
        if let Some(rest) = columns.iter_mut().find(|it| it.is_rest) {
            rest.width = (width + rest.width).saturating_sub(used).max(10);
        }
        TableLayout(columns)
    }

    /// How wide the column is that takes what others leave.
    pub(super) fn room(&self) -> usize {
        let rest = self.0.iter().find(|it| it.is_rest);
        rest.map_or(0, |it| usize::from(it.width))
    }

    /// What stands above them; rows are ordered by one.
    pub(super) fn heading(&self, by: &str) -> Vec<Cell> {
        let cell = |(i, it): (usize, &Column<R>)| match it.heading == by {
            true => it.cell(i, it.heading, Role::Accent).bold(),
            false => it.cell(
                i,
                format!("{} {}", it.heading, it.unit).trim_end(),
                Role::Dim,
            ),
        };
        self.0.iter().enumerate().map(cell).collect()
    }

    /// A row; where `role` says nothing of a column, it stands in the column's own.
    pub(super) fn cells(&self, row: &R, role: impl Fn(&str) -> Option<Role>) -> Vec<Cell> {
        let cell = |(i, it): (usize, &Column<R>)| {
            let own = if it.is_dim { Role::Dim } else { Role::Text };
            it.cell(i, &(it.text)(row), role(it.heading).unwrap_or(own))
        };
        self.0.iter().enumerate().map(cell).collect()
    }
}

impl<R> Column<R> {
    /// Names and what takes the rest stand left, figures right.
    fn cell(&self, at: usize, text: &str, role: Role) -> Cell {
        match at == 0 || self.is_rest {
            true => Cell::left(text, self.width, role),
            false => Cell::right(text, self.width, role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(width: u16) -> TableLayout<u64> {
        let column = Column::<u64>::new;
        let columns = vec![
            Column::rest("name", 10, |it: &u64| format!("row {it}")),
            column("most", 6, u64::to_string).spare(1),
            column("all", 4, u64::to_string),
            column("least", 5, u64::to_string).spare(2),
            column("text alone", 0, u64::to_string),
        ];
        TableLayout::new(columns, width)
    }

    #[test]
    fn what_is_worth_least_is_left_out_first_and_the_name_takes_the_rest() {
        let shown = |width: u16| {
            let layout = layout(width);
            let headings: Vec<&str> = layout.0.iter().map(|it| it.heading).collect();
            (headings.join(" "), layout.room())
        };
        // Two columns before each, and the last of the screen: 12 + 8 + 6 + 7 + 1.
        assert_eq!(shown(40), ("name most all least".to_owned(), 16));
        assert_eq!(shown(34), ("name most all least".to_owned(), 10));
        assert_eq!(shown(33), ("name most all".to_owned(), 16));
        assert_eq!(shown(26), ("name all".to_owned(), 17));
        assert_eq!(shown(3), ("name all".to_owned(), 10));
    }

    #[test]
    fn cells_stand_below_their_headings() {
        let layout = layout(33);
        let (dim, accent) = (Role::Dim, Role::Accent);
        let headings = [
            Cell::left("name", 16, dim),
            Cell::right("most", 6, accent).bold(),
            Cell::right("all", 4, dim),
        ];
        assert_eq!(layout.heading("most"), headings);
        let cells = [
            Cell::left("row 7", 16, Role::Text),
            Cell::right("7", 6, Role::Text),
            Cell::right("7", 4, Role::Bad),
        ];
        let role = |column: &str| (column == "all").then_some(Role::Bad);
        assert_eq!(layout.cells(&7, role), cells);
    }
}
