//! Detects that a program has ended although another process keeps its standard output open.
//!
//! A background process inherits the standard output of the program that started it, unless the program redirects it.
//! The pipe then has no end until that process ends. The response does not wait for it: once the program itself has
//! ended, its response ends after a short time without output.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rocknet_io::process_end::{ProcessDescriptor, ProcessEnd};
use rocknet_io::wheel::{Deadline, Wheel};

/// Time without output after the end of a program, after which its response ends. Everything that the program itself
/// wrote is in the pipe when it ends. The wait is for output of processes that the program started without waiting for
/// their end.
const SILENCE: Duration = Duration::from_secs(1);

/// State of the detection.
pub struct ProgramEnd {
    /// `None` if the end of the program cannot be detected on this system.
    process: Option<ProcessEnd>,
    /// End of the silence; `None` while the program runs.
    silence: Option<Deadline>,
}

impl ProgramEnd {
    /// Registers the descriptor of the process with the current event loop.
    pub fn new(process: Option<ProcessDescriptor>) -> ProgramEnd {
        let process = process.and_then(|process| ProcessEnd::new(process).ok());
        ProgramEnd { process, silence: None }
    }

    /// Called when output was received. The time without output starts again.
    pub fn restart(&self, wheel: &Wheel) {
        if let Some(silence) = &self.silence {
            silence.set(wheel.ticks(SILENCE));
        }
    }

    /// Ready once the program has ended and no output was received for a second after that. Call it only while no
    /// output is available.
    pub fn poll_abandoned(&mut self, context: &mut Context<'_>, wheel: &Rc<Wheel>) -> Poll<()> {
        let silence = match &self.silence {
            Some(silence) => silence,
            None => {
                let Some(process) = &self.process else {
                    return Poll::Pending;
                };
                ready!(process.poll(context));
                let silence = self.silence.insert(wheel.deadline());
                silence.set(wheel.ticks(SILENCE));
                silence
            }
        };
        match silence.poll_past(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
