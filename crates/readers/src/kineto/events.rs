//! The events of a list, one after the other: of a block, or of the rest of a stream.

use std::io::Read;

use super::convert::Converter;
use super::event::Event;
use super::fast;
use super::repair::repair;
use super::scan::{ScanError, Scanner};

/// What may come next in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    /// An event, or the end of the list.
    #[default]
    Event,
    /// A comma, or the end of the list.
    Comma,
}

/// Why reading returned without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The list was closed.
    List,
    /// The text ends between two events.
    Text,
}

/// The events that were read of a list.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) converter: Converter,
    /// Offset of the first event that could not be read, and why.
    pub(super) damaged: Option<(u64, String)>,
    /// What comes at `at`.
    pub(super) next: Next,
    /// Offset in the text of the first unread byte.
    pub(super) at: u64,
}

impl Events {
    /// Begins with nothing read; `next` comes at offset `at`.
    pub(super) fn at(at: u64, next: Next) -> Events {
        Events {
            next,
            at,
            ..Events::default()
        }
    }

    /// Reads events, from wherever in the list the scanner stands.
    ///
    /// # Errors
    /// When the text is no list of values; `at` is then where the last unreadable value begins.
    pub(super) fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<End, ScanError> {
        loop {
            self.at = scanner.offset();
            let Some(byte) = scanner.peek()? else {
                self.at = scanner.offset();
                return Ok(End::Text);
            };
            self.at = scanner.offset();
            // A comma before the end is common in hand-made traces.
            if byte == b']' {
                scanner.advance(1);
                return Ok(End::List);
            }
            match self.next {
                Next::Event => {
                    self.event(scanner)?;
                    self.next = Next::Comma;
                }
                Next::Comma => {
                    scanner.expect(b',', "expected a comma or the end of the list of events")?;
                    self.next = Next::Event;
                }
            }
        }
    }

    fn event<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ScanError> {
        let text = scanner.rest();
        let mut event = Event::default();
        if let Some(length) = fast::event(text, &mut event) {
            self.converter.take(&event);
            scanner.advance(length);
            return Ok(());
        }
        self.any_event(scanner)
    }

    /// Reads an event that is not of the common shape, or not an event at all.
    fn any_event<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ScanError> {
        let at = scanner.offset();
        let text = scanner.value()?;
        match Event::parse(text) {
            Ok(event) => self.converter.take(&event),
            Err(_) if text == b"null" => {}
            Err(_) => match Event::parse(repair(text).as_bytes()) {
                Ok(event) => self.converter.take(&event),
                Err(error) => {
                    self.converter.gather.damaged(0);
                    self.damaged.get_or_insert_with(|| (at, error.to_string()));
                }
            },
        }
        Ok(())
    }

    /// Adds the events of the text that follows.
    pub(super) fn absorb(&mut self, later: Events) {
        self.converter.absorb(later.converter);
        self.damaged = self.damaged.take().or(later.damaged);
        self.next = later.next;
        self.at = later.at;
    }
}
