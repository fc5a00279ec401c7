//! A run of named steps. Each is timed, all are run, and the summary at the end lists the failures.

use crate::Failure;
use std::time::{Duration, Instant};

/// Outcome of a step.
enum StepOutcome {
    Passed,
    /// Passed, with a remark for the summary.
    PassedWithRemark(String),
    /// Failed, with the error.
    Failed(String),
    Skipped(&'static str),
}

/// The completed steps of a run, with outcome and duration.
#[derive(Default)]
pub struct Steps {
    done: Vec<(&'static str, StepOutcome, Duration)>,
}

impl Steps {
    /// Runs one step. A failure is printed immediately and does not stop later steps, so that one run shows all
    /// failures.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<(), Failure>) {
        self.remarked(name, || work().map(|()| None));
    }

    /// Runs one step as [`step`](Self::step) does; its work may return a remark for the summary.
    pub fn remarked(&mut self, name: &'static str, work: impl FnOnce() -> Result<Option<String>, Failure>) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = match work() {
            Ok(None) => StepOutcome::Passed,
            Ok(Some(remark)) => StepOutcome::PassedWithRemark(remark),
            Err(failure) => {
                eprintln!("{name}: {failure}");
                StepOutcome::Failed(failure.to_string())
            }
        };
        self.done.push((name, outcome, start.elapsed()));
    }

    /// Records a step that cannot run here, with the reason.
    pub fn skip(&mut self, name: &'static str, reason: &'static str) {
        self.done.push((name, StepOutcome::Skipped(reason), Duration::ZERO));
    }

    /// Prints the summary; fails if any step failed.
    pub fn finish(self) -> Result<(), Failure> {
        let total: Duration = self.done.iter().map(|(_, _, time)| *time).sum();
        let failed: Vec<_> = self
            .done
            .iter()
            .filter(|(_, outcome, _)| matches!(outcome, StepOutcome::Failed(_)))
            .map(|(name, ..)| *name)
            .collect();
        // Repeated here, because the output of later steps may be long, and some systems show only the last lines.
        for (name, outcome, _) in &self.done {
            if let StepOutcome::Failed(error) = outcome {
                println!("\n== failure of {name}\n{error}");
            }
        }
        println!("\n== summary");
        for (name, outcome, time) in &self.done {
            let seconds = time.as_secs_f64();
            match outcome {
                StepOutcome::Passed => println!("passed   {seconds:7.1} s  {name}"),
                StepOutcome::PassedWithRemark(remark) => println!("passed   {seconds:7.1} s  {name} ({remark})"),
                StepOutcome::Failed(_) => println!("FAILED   {seconds:7.1} s  {name}"),
                StepOutcome::Skipped(reason) => println!("skipped            {name}: {reason}"),
            }
        }
        if failed.is_empty() {
            println!("All steps passed in {:.0} s.", total.as_secs_f64());
            Ok(())
        } else {
            Err(format!("failed: {}", failed.join(", ")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_fails_the_run_but_does_not_stop_later_steps() {
        let mut ran = 0;
        let mut steps = Steps::default();
        steps.step("first", || Err("broken".into()));
        steps.step("second", || {
            ran += 1;
            Ok(())
        });
        steps.skip("third", "not here");
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: first");
        assert_eq!(ran, 1);
    }

    #[test]
    fn skipped_steps_do_not_fail_a_run() {
        let mut steps = Steps::default();
        steps.skip("only", "not here");
        assert!(steps.finish().is_ok());
    }
}
