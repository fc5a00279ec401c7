//! Choices: enums whose words, documentation and default are declared once.
//!
//! A declaration by [`choice!`] gives the enum, the parser of its words, their printing, and the table of words that the
//! check, the reference page and the JSON Schema read.

/// A word of the configuration.
#[derive(Debug)]
pub struct Word {
    pub text: &'static str,
    pub doc: &'static str,
    /// Feature of a later version that brings the word.
    pub later: Option<&'static str>,
}

impl Word {
    pub(crate) const fn new(text: &'static str, doc: &'static str) -> Word {
        Word { text, doc, later: None }
    }

    #[allow(dead_code, reason = "every word acts at the moment; the next one to come will not")]
    pub(crate) const fn later(text: &'static str, doc: &'static str, feature: &'static str) -> Word {
        Word {
            text,
            doc,
            later: Some(feature),
        }
    }
}

/// An enum whose variants are words of the configuration.
pub trait Choice: Sized + 'static {
    /// The words in the order of the reference page.
    const WORDS: &'static [Word];

    /// Returns the variant that a word stands for.
    fn of(word: &str) -> Option<Self>;

    /// Returns the word of a variant; `None` for a variant that is written in another way, such as a number.
    fn written(&self) -> Option<&'static str>;

    /// Returns the word of a variant; empty for a variant that is written in another way.
    fn word(&self) -> &'static str {
        self.written().unwrap_or_default()
    }
}

/// Declares an enum of words: `Variant = "word", "its documentation";`. Variants that are written in another way, as a
/// number or a path, follow in a block after `with`. `default Variant` implements [`Default`].
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

            #[allow(unreachable_patterns, reason = "of a choice of words alone, every variant has one")]
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
        /// How long.
        pub enum Length {
            Short = "short", "less than most";
            Long = "long", "more than most";
        }
        with {
            /// So many.
            Exactly(u8),
        }
        default Long
    }

    #[test]
    fn words_and_variants_lead_to_each_other() {
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
