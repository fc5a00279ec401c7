//! End of a server that was not stopped by this program.

use super::links::Link;
use super::trouble::trouble_text;
use super::{Effect, Model};
use crate::job::{Ending, EndingCause};
use crate::words::{Words, fill};

/// Signal that no process can handle: the system sends it if memory is short.
const SIGKILL: i32 = 9;

impl Model {
    /// Takes the end of the server. Without lines of its output, the last lines of its error log are shown.
    pub(super) fn end(&mut self, ending: Ending) {
        if ending.cause != EndingCause::Unknown || !ending.lines.is_empty() {
            self.ending = Some(ending);
            return;
        }
        // Nothing is known about the end if the logs were not followed, or if they have an orderly stop.
        let lines = self.log.last_errors();
        let is_orderly = lines
            .iter()
            .any(|line| line.ends_with(" stopping") || line.contains("\"stopping\""));
        if !lines.is_empty() && !is_orderly {
            self.ending = Some(Ending { lines, ..ending });
        }
    }

    /// Copies the reason why the server has ended or could not start, with the last lines of its output.
    pub(super) fn copy_reason(&self) -> Vec<Effect> {
        let (reason, lines) = match (&self.link, &self.ending) {
            (Link::StartFailed(failure), _) => (trouble_text(self.words(), &failure.reason), &failure.lines),
            (_, Some(ending)) => (cause_text(self.words(), &ending.cause), &ending.lines),
            _ => return Vec::new(),
        };
        let text: Vec<&str> = std::iter::once(&*reason)
            .chain(lines.iter().map(|line| &**line))
            .collect();
        vec![Effect::Copy(text.join("\n"))]
    }
}

/// Returns the sentence about the cause.
pub fn cause_text(words: &Words, cause: &EndingCause) -> String {
    match cause {
        EndingCause::Code(code) => fill(words.ended_code, &[&code.to_string()]),
        EndingCause::Signal(SIGKILL) => words.ended_killed.to_owned(),
        EndingCause::Signal(signal) => fill(words.ended_signal, &[&signal.to_string()]),
        EndingCause::OutOfMemory => words.ended_memory.to_owned(),
        EndingCause::Result(result) => fill(words.ended_result, &[result]),
        EndingCause::Unknown => words.ended_unknown.to_owned(),
    }
}
