//! Macro for structs of the model whose fields are declared with their defaults.

/// Declares a struct and its [`Default`] with fields such as `pub field: Type = value,`. The table of keys uses these
/// values as the defaults of its keys.
macro_rules! with_defaults {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $default:expr,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)+ }
            }
        }
    };
}

pub(super) use with_defaults;
