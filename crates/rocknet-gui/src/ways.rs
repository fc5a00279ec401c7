//! Ways in which a server can be started, stopped and restarted on this machine: by a unit of systemd, or as a program.

/// Unit of systemd that runs a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// The unit of the system, which packages install.
    System,
    /// The unit of this account.
    User,
}

/// Reason why this program cannot use a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Only root may start and stop the unit, because polkit is not installed.
    NoPolkit,
    /// The account has no access to the control socket of the unit's server.
    NoMember { account: String, group: String },
}

/// State of a unit that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    pub kind: UnitKind,
    /// True if its server runs, or is starting.
    pub is_active: bool,
    /// True if the system may ask for a password before it starts or stops the unit.
    pub may_ask: bool,
    pub obstacle: Option<Obstacle>,
}

/// Way in which a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starter {
    Unit(UnitKind),
    /// As a program of this account, with the configuration of the user.
    #[default]
    Program,
}

/// Reason why this program cannot restart the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRestart {
    NoPolkit,
    /// The server was started elsewhere, with another configuration than this program would use.
    OtherConfig,
}

/// Ways of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    /// Units that are installed.
    pub units: Vec<UnitState>,
    /// Unit that runs the connected server.
    pub running_unit: Option<UnitKind>,
    /// True if the user has a configuration file.
    pub has_own_config: bool,
    /// True if the connected server serves the configuration of the user.
    pub serves_own_config: bool,
}

impl Ways {
    /// Returns a unit that is installed.
    pub fn unit(&self, kind: UnitKind) -> Option<&UnitState> {
        self.units.iter().find(|unit| unit.kind == kind)
    }

    /// Returns the ways to start a server, the usual one first. There is at least one.
    ///
    /// The unit of the system comes after a program if the user has a configuration, because the unit serves another
    /// configuration.
    pub fn starters(&self) -> Vec<Starter> {
        let is_usable = |unit: &&UnitState| unit.obstacle.is_none() && !unit.is_active;
        let usable = |kind| self.unit(kind).filter(is_usable).map(|_| Starter::Unit(kind));
        let mut starters: Vec<Starter> = usable(UnitKind::User).into_iter().collect();
        let system = usable(UnitKind::System);
        if self.has_own_config {
            starters.push(Starter::Program);
            starters.extend(system);
        } else {
            starters.extend(system);
            starters.push(Starter::Program);
        }
        starters
    }

    /// Returns the account and the group that it would have to join, if the system's server runs and the account has no
    /// access to it.
    pub fn closed_server(&self) -> Option<(&str, &str)> {
        let unit = self.unit(UnitKind::System).filter(|unit| unit.is_active)?;
        match &unit.obstacle {
            Some(Obstacle::NoMember { account, group }) => Some((account, group)),
            _ => None,
        }
    }

    /// Returns the reason why this program cannot restart the connected server; `None` if it can.
    pub fn no_restart(&self) -> Option<NoRestart> {
        match self.running_unit {
            Some(kind) => {
                let obstacle = self.unit(kind).and_then(|unit| unit.obstacle.as_ref());
                (obstacle == Some(&Obstacle::NoPolkit)).then_some(NoRestart::NoPolkit)
            }
            None => (!self.serves_own_config).then_some(NoRestart::OtherConfig),
        }
    }

    /// Returns true if the system may ask for a password when the server is started in this way.
    pub fn may_ask(&self, starter: Starter) -> bool {
        match starter {
            Starter::Unit(kind) => self.unit(kind).is_some_and(|unit| unit.may_ask),
            Starter::Program => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the state of a unit. Only the service of the computer may ask for a password.
    pub fn unit(kind: UnitKind, is_active: bool, obstacle: Option<Obstacle>) -> UnitState {
        UnitState {
            kind,
            is_active,
            may_ask: kind == UnitKind::System,
            obstacle,
        }
    }

    fn ways(units: Vec<UnitState>, has_own_config: bool) -> Ways {
        Ways {
            units,
            has_own_config,
            ..Ways::default()
        }
    }

    #[test]
    fn the_usual_way_comes_first() {
        use Starter::{Program, Unit};
        use UnitKind::{System, User};
        let no_member = Obstacle::NoMember {
            account: "ann".to_owned(),
            group: "rocknet".to_owned(),
        };
        for (ways, expected) in [
            (Ways::default(), vec![Program]),
            (
                ways(vec![unit(System, false, None)], false),
                vec![Unit(System), Program],
            ),
            (ways(vec![unit(System, false, None)], true), vec![Program, Unit(System)]),
            (ways(vec![unit(User, false, None)], true), vec![Unit(User), Program]),
            // A server that runs already cannot be started.
            (ways(vec![unit(System, true, None)], false), vec![Program]),
            (
                ways(vec![unit(System, false, Some(Obstacle::NoPolkit))], false),
                vec![Program],
            ),
            (
                ways(vec![unit(System, false, Some(no_member.clone()))], false),
                vec![Program],
            ),
        ] {
            assert_eq!(ways.starters(), expected, "{ways:?}");
        }
        let closed = ways(vec![unit(System, true, Some(no_member))], false);
        assert_eq!(closed.closed_server(), Some(("ann", "rocknet")));
    }

    #[test]
    fn a_restart_needs_rights_and_the_same_configuration() {
        let mut ways = ways(vec![unit(UnitKind::System, true, Some(Obstacle::NoPolkit))], false);
        assert_eq!(ways.no_restart(), Some(NoRestart::OtherConfig));
        ways.serves_own_config = true;
        assert_eq!(ways.no_restart(), None);
        ways.running_unit = Some(UnitKind::System);
        assert_eq!(ways.no_restart(), Some(NoRestart::NoPolkit));
        ways.units[0].obstacle = None;
        assert_eq!(ways.no_restart(), None);
        assert!(ways.may_ask(Starter::Unit(UnitKind::System)));
        assert!(!ways.may_ask(Starter::Program));
    }
}
