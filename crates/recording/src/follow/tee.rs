//! A feed that is written to a recording on its way to the consumer.

use std::io;
use std::path::Path;

use super::{Saver, notice};
use activity::feed::{Feed, Message, Outcome};

/// Passes `feed` on and saves its batches in `directory`. When saving fails, that is said once and the
/// timeline goes on.
///
/// # Errors
/// When the directory cannot be made or holds a recording already, or the system gives no thread.
pub fn tee(feed: Feed, directory: &Path) -> io::Result<Feed> {
    let mut saver = Some(Saver::create(directory)?);
    let shown = directory.display().to_string();
    Feed::spawn("cuptop-saver", move |outlet| {
        for message in feed.receiver() {
            if outlet.stop.is_stopped() {
                feed.stop.stop();
            }
            if let (Message::Batch(batch), Some(open)) = (&message, &mut saver) {
                let text = match open.save(batch) {
                    Err(error) => {
                        saver = None;
                        Some(format!(
                            "the timeline is no longer saved in {shown}: {error}"
                        ))
                    }
                    Ok(()) => open.trouble().map(|trouble| {
                        format!("the timeline is saved in {shown} in part: {trouble}")
                    }),
                };
                if let Some(text) = text
                    && outlet.send(notice(true, text)).is_err()
                {
                    return Outcome::Stopped;
                }
            }
            if let Message::Finished(outcome) = message {
                if let Some(saver) = saver.take() {
                    saver.finish();
                }
                return outcome;
            }
            if outlet.send(message).is_err() {
                break;
            }
        }
        Outcome::Stopped
    })
}
