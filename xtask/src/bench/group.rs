//! The groups of rows. Each group has a file with its rows, lanes and goals, and its results are written to one page.

pub mod builds;
pub mod cache;
pub mod controllers;
pub mod fastcgi;
pub mod files;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod io;
pub mod limits;
pub mod page;
pub mod priority;
pub mod proxy;
mod rows;
pub mod slow_network;
pub mod tls;
pub mod websocket;

pub use rows::Group;

/// Every group of the bench.
pub const ALL: &[Group] = &[
    h1::GROUP,
    h2::GROUP,
    h3::GROUP,
    io::GROUP,
    files::GROUP,
    tls::GROUP,
    priority::GROUP,
    proxy::GROUP,
    cache::GROUP,
    limits::GROUP,
    controllers::GROUP,
    websocket::GROUP,
    fastcgi::GROUP,
    page::GROUP,
    slow_network::GROUP,
    builds::GROUP,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_sections_contiguous_and_goals_refer_to_existing_lanes() {
        let mut names = HashSet::new();
        for group in ALL {
            assert!(names.insert(group.name), "{} twice", group.name);
            let mut sections = Vec::new();
            for row in group.rows {
                assert!(names.insert(row.name), "{} twice", row.name);
                if sections.last() != Some(&row.section) {
                    assert!(!sections.contains(&row.section), "{} is split", row.section);
                    sections.push(row.section);
                }
                let lanes: HashSet<_> = row.lanes.iter().map(|lane| lane.name).collect();
                assert_eq!(lanes.len(), row.lanes.len(), "{} has a lane twice", row.name);
            }
            for goal in group.goals {
                for (row, lane) in goal.figure.sources() {
                    let row = group.rows.iter().find(|known| known.name == row);
                    let lanes = row.map_or(&[][..], |row| row.lanes);
                    assert!(lanes.iter().any(|known| known.name == lane), "{}", goal.text);
                }
            }
        }
    }
}
