//! Tests of the rules and restrictions that directives of other servers become.

mod apache;
mod back_ends;
mod caddy;
mod caddy_auth;
mod forward_auth;
mod hosts;
mod named_locations;
mod nginx;
mod nginx_lists;
mod nginx_precedence;
mod nginx_refusals;
mod nginx_servers;
mod redirects;
mod restrictions;
mod rewrites;
mod scripts;
mod sections;
mod support;
