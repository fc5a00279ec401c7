//! Table of the texts: the name, the English form and the German form of each. The rows of a subject have a file.

/// Declares the type of the texts, and a value for each language.
macro_rules! table {
    ($($name:ident = $english:literal, $german:literal;)*) => {
        /// Texts of one language.
        #[derive(Debug, PartialEq, Eq)]
        pub struct Words {
            $(pub $name: &'static str,)*
        }

        pub const ENGLISH: Words = Words { $($name: $english,)* };

        pub const GERMAN: Words = Words { $($name: $german,)* };

        /// Name and forms of each text.
        #[cfg(test)]
        pub const ROWS: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $german),)*];
    };
}

/// Declares the texts once no subject is left. A subject is a macro that adds its rows, and goes on with the others.
macro_rules! subjects {
    ([] $($rows:tt)*) => {
        table! { $($rows)* }
    };
    ([$subject:ident $($others:ident)*] $($rows:tt)*) => {
        $subject! { [$($others)*] $($rows)* }
    };
}

subjects! {
    [navigation websites editing adding server services traffic reports settings]
}
