//! Enums of configuration words, declared once with their words, documentation and default.
//!
//! The macro [`choice!`] generates the enum, the parser of its words, and the table of words. The table is used by the
//! check of a configuration, the reference and the JSON Schema.

/// Word of the configuration.
#[derive(Debug)]
pub struct Word {
    /// The word as it is written.
    pub text: &'static str,
    /// Documentation in the reference: a phrase.
    pub doc: &'static str,
    /// Feature of a later version that adds the word; `None`: the word is available now.
    pub later: Option<&'static str>,
}

impl Word {
    pub(crate) const fn new(text: &'static str, doc: &'static str) -> Word {
        Word { text, doc, later: None }
    }

    #[allow(
        dead_code,
        reason = "every word is available in this version, but a word of a later version may be added"
    )]
    pub(crate) const fn later(text: &'static str, doc: &'static str, feature: &'static str) -> Word {
        Word {
            text,
            doc,
            later: Some(feature),
        }
    }
}

/// Enum whose variants are words of the configuration.
pub trait Choice: Sized + 'static {
    /// Words in the order of the reference.
    const WORDS: &'static [Word];

    /// Returns the variant of a word; `None` if no variant has this word. Upper and lower case are distinguished.
    fn of(word: &str) -> Option<Self>;

    /// Returns the word of a variant; `None` for a variant without a word, such as a number.
    fn written(&self) -> Option<&'static str>;

    /// Returns the word of a variant; empty for a variant without a word.
    fn word(&self) -> &'static str {
        self.written().unwrap_or_default()
    }
}

/// Declares an enum of words: `Variant = "word", "its documentation";`. Variants without a word, such as a number or a
/// path, follow in a block after `with`. `default Variant` implements [`Default`].
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($variant:ident = $word:literal, $doc:literal;)+
        }
        $(with { $($(#[$other_meta:meta])* $other:ident $(($data:ty))?,)+ })?
        $(default $default:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $doc] $variant,)+
            $($($(#[$other_meta])* $other $(($data))?,)+)?
        }

        $(impl Default for $name {
            fn default() -> $name {
                $name::$default
            }
        })?

        impl $crate::choice::Choice for $name {
            const WORDS: &'static [$crate::choice::Word] = &[$($crate::choice::Word::new($word, $doc),)+];

            fn of(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            #[allow(unreachable_patterns, reason = "without `with`, every variant has a word")]
            fn written(&self) -> Option<&'static str> {
                match self {
                    $($name::$variant => Some($word),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use choice;

#[cfg(test)]
mod tests {
    use super::Choice;

    choice! {
        /// Length.
        pub enum Length {
            Short = "short", "less than most";
            Long = "long", "more than most";
        }
        with {
            /// This length.
            Exactly(u8),
        }
        default Long
    }

    #[test]
    fn words_and_variants_correspond() {
        for word in Length::WORDS {
            assert_eq!(Length::of(word.text).unwrap().word(), word.text);
        }
        let docs: Vec<_> = Length::WORDS.iter().map(|word| word.doc).collect();
        assert_eq!(docs, ["less than most", "more than most"]);
        assert_eq!((Length::of("short"), Length::of("Short")), (Some(Length::Short), None));
        assert_eq!(Length::default(), Length::Long);
        assert_eq!((Length::Exactly(3).written(), Length::Exactly(3).word()), (None, ""));
    }
}
