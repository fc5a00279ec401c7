//! Parts of the model that keys are bound to, each with the value that it has if no key is written.

use crate::binding::{Binding, Kind};
use crate::model::{
    AccessLog, Admin, Application, Ban, Browse, Cache, Cgi, Cors, Events, Health, Host, Http3, Limits, Log, Mirror,
    PhpSettings, Protocol, Proxy, ResponseCache, Rotate, Server, Settings, Site, SiteTls, Spool, Tls, Tracing,
    Upstream, UpstreamRole, WeightedUpstream, ZipLimits,
};

/// Part of the model that keys are bound to.
pub(crate) trait Model: Sized + 'static {
    /// Returns the binding of a target if it belongs to this part of the model.
    fn binding(target: &Target) -> Option<&Binding<Self>>;

    /// Returns the value with every key at its default; `None` if the defaults depend on other tables.
    fn defaults() -> Option<Self>;
}

macro_rules! models {
    ($($name:ident: $defaults:expr,)+) => {
        /// Binding of a key, with the part of the model that it belongs to.
        #[derive(Debug)]
        pub(crate) enum Target {
            $($name(Binding<$name>),)+
        }

        impl Target {
            /// Returns the default of the bound value as TOML; `None` if the value is unset by default, or if
            /// the defaults depend on other tables.
            pub fn default(&self, kind: &Kind) -> Option<String> {
                match self {
                    $(Target::$name(binding) => (binding.render)(&$name::defaults()?, kind).line(),)+
                }
            }
        }

        $(impl Model for $name {
            fn binding(target: &Target) -> Option<&Binding<$name>> {
                match target {
                    Target::$name(binding) => Some(binding),
                    _ => None,
                }
            }

            fn defaults() -> Option<$name> {
                $defaults
            }
        })+
    };
}

// Each part of the model, with a value in which every key has its default.
models! {
    Server: Some(Server::default()),
    Events: Some(Events::default()),
    Spool: Some(Spool::default()),
    Http3: Some(Http3::default()),
    Limits: Some(Limits::default()),
    Log: Some(Log::default()),
    AccessLog: Some(AccessLog::default()),
    Rotate: Some(Rotate::default()),
    Cache: Some(Cache::default()),
    Admin: Some(Admin::default()),
    Tracing: Some(Tracing::default()),
    Ban: Some(Ban::default()),
    Tls: Some(Tls::default()),
    Site: None,
    SiteTls: None,
    Settings: Some(Settings::default()),
    Proxy: Some(Proxy::to(Vec::new())),
    WeightedUpstream: Some(WeightedUpstream { upstream: empty_upstream(), weight: WeightedUpstream::WEIGHT, role: UpstreamRole::Active }),
    Health: Some(Health::of(String::new())),
    Mirror: Some(Mirror::to(empty_upstream())),
    Application: Some(Application::at(Protocol::FastCgi, Vec::new())),
    Cgi: Some(Cgi::at(String::new())),
    PhpSettings: Some(PhpSettings::default()),
    Browse: Some(Browse::default()),
    ZipLimits: Some(ZipLimits::default()),
    Cors: Some(Cors::default()),
    ResponseCache: Some(ResponseCache::default()),
}

/// Returns an upstream with an empty address. The defaults of its other fields do not depend on the address.
fn empty_upstream() -> Upstream {
    Upstream::at(Host::Name(String::new(), 0))
}
