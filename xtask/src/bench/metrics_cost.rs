//! The cost of the metrics of a ready response, measured by a program that does nothing else. The difference of two
//! servers, one of them without metrics, would be smaller than the noise of a row under load.

use super::lane::Lane;
use super::programs::rocknet::metrics_program;
use super::run::Run;
use super::table::{Table, table};
use crate::Failure;
use crate::command::output_alone;
use std::process::Command;

/// Measures the CPU time of counting one response.
pub fn of_a_response(_: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "examples/metrics_cost: median of 9 measurements of 20,000,000 responses each, less the loop. The counters \
                of one route stay in the nearest cache; those of 2,000 routes in random order, 3.4 MB, do not.";
    let columns = ["one route, µs", "2,000 routes, µs"];
    Ok(table(lanes, &columns, note, |_| {
        let program = metrics_program().ok_or("the example metrics_cost is not built")?;
        parse(&output_alone(&mut Command::new(program))?)
    }))
}

fn parse(text: &str) -> Result<Vec<f64>, Failure> {
    let figures: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    match figures {
        Ok(figures) if figures.len() == 2 => Ok(figures),
        _ => Err(format!("no two figures in {text:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_are_parsed() {
        assert_eq!(parse("0.0021 0.0312\n").unwrap(), [0.0021, 0.0312]);
        for text in ["", "1", "1 2 3", "1 x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
