//! Response timeout of a handler, with the limits that it consists of.

use rocknet_handler::handler::ANSWER_TIMEOUT;
use rocknet_io::wheel::Wheel;

use crate::handler::Handler;
use crate::route::Route;

/// Response timeout of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandlerTimeout {
    /// Time in ticks of the timer wheel.
    pub ticks: u32,
    /// Time for each further piece of the response, in ticks.
    pub body_ticks: u32,
    /// Names of the limits that the timeout consists of, for the log.
    pub limits: &'static str,
}

impl HandlerTimeout {
    /// Returns the timeout of a handler for a request of a route.
    pub(super) fn of(handler: &dyn Handler, wheel: &Wheel, route: &Route) -> HandlerTimeout {
        HandlerTimeout {
            ticks: handler.timeout_ticks(wheel, route),
            body_ticks: handler.body_timeout_ticks(wheel, route),
            limits: handler.timeout_limits(),
        }
    }

    /// Returns the timeout of a route whose handler is not known.
    pub(super) fn of_route(wheel: &Wheel, route: &Route) -> HandlerTimeout {
        HandlerTimeout {
            ticks: wheel.ticks(route.answer_timeout),
            body_ticks: wheel.ticks(route.answer_timeout),
            limits: ANSWER_TIMEOUT,
        }
    }

    /// Returns the timeout of each further piece of a response. The log names `answer_timeout` as its limit, because a
    /// handler with another limit, such as a proxy, reports its own error before.
    pub fn of_body(ticks: u32) -> HandlerTimeout {
        HandlerTimeout {
            ticks,
            body_ticks: ticks,
            limits: ANSWER_TIMEOUT,
        }
    }
}
