//! Adds notes about parameters such as `fastcgi_param` that have no effect in the result.
//!
//! No back end takes them, or their back end is a php-fpm address, which takes none.

use crate::directive::Directive;
use crate::document::Notes;

use super::params::{constant, note_unused, pass_of};
use super::php;
use super::upstream::Upstreams;

/// Notes the parameters of a level (`http`, `server` or `location`) that have no effect in the result. `own`: its
/// parameters. `pass`: its back end. `blocks`: directives of the level, of which servers and locations matter.
pub(super) fn note(
    own: &[&Directive],
    pass: Option<&Directive>,
    blocks: &[&Directive],
    upstreams: &Upstreams,
    notes: &mut dyn Notes,
) {
    for directive in own.iter().filter(|directive| constant(directive).is_some()) {
        let Some(name) = pass_of(directive) else { continue };
        let mut users = ParamUsers::default();
        users.add(name, blocks, upstreams);
        users.has_application |= pass.is_some_and(|pass| pass.is(name));
        if users.has_php {
            notes.skip(directive, php::NO_PARAMS);
        } else if !users.has_application {
            note_unused(directive, name, notes);
        }
    }
}

/// Back ends that inherit parameters.
#[derive(Default)]
struct ParamUsers {
    has_php: bool,
    has_application: bool,
}

impl ParamUsers {
    /// Adds the back ends of servers and locations that have no parameters of their own. `pass`: directive of the back
    /// ends, such as `fastcgi_pass`.
    fn add(&mut self, pass: &str, blocks: &[&Directive], upstreams: &Upstreams) {
        for block in blocks.iter().filter(|block| block.is("server") || block.is("location")) {
            let inner = block.children();
            if inner.iter().any(|directive| pass_of(directive) == Some(pass)) {
                continue;
            }
            if inner.iter().any(|directive| directive.is(pass)) {
                match php::php_address(block, upstreams) {
                    Some(_) => self.has_php = true,
                    None => self.has_application = true,
                }
            }
            self.add(pass, &inner.iter().collect::<Vec<_>>(), upstreams);
        }
    }
}
