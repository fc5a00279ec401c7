//! Colours of the window, light and dark. A test checks their contrast.

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    const fn hex(colour: u32) -> Rgb {
        Rgb((colour >> 16) as u8, (colour >> 8) as u8, colour as u8)
    }

    /// Returns the relative luminance of WCAG 2.2, from 0 for black to 1 for white.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Returns the mixture with another colour, of which it has `percent` %.
    pub fn mixed(self, other: Rgb, percent: u16) -> Rgb {
        let part = |one: u8, two: u8| {
            let sum = u16::from(one) * (100 - percent.min(100)) + u16::from(two) * percent.min(100);
            (sum / 100) as u8
        };
        Rgb(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2))
    }

    /// Returns the contrast ratio of WCAG 2.2, from 1 to 21.
    pub fn contrast(self, other: Rgb) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }
}

/// Colours of a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Background of the window.
    pub back: Rgb,
    /// Background of cards, tables and fields.
    pub card: Rgb,
    /// Background of the navigation.
    pub side: Rgb,
    /// Background of a selected row, and of the chosen page.
    pub selected: Rgb,
    /// Background below the pointer.
    pub hover: Rgb,
    pub text: Rgb,
    /// Less important text.
    pub dim: Rgb,
    /// Lines that separate parts, which need no contrast.
    pub soft: Rgb,
    /// Edges of fields and buttons.
    pub edge: Rgb,
    /// Primary buttons, focus, and the first line of a chart.
    pub accent: Rgb,
    /// Text on the accent.
    pub on_accent: Rgb,
    /// Second line of a chart.
    pub second: Rgb,
    pub good: Rgb,
    pub fair: Rgb,
    pub bad: Rgb,
}

/// The light theme.
pub const LIGHT: Theme = Theme {
    back: Rgb::hex(0xf6f7f9),
    card: Rgb::hex(0xffffff),
    side: Rgb::hex(0xeceff3),
    selected: Rgb::hex(0xdde9f8),
    hover: Rgb::hex(0xe4e8ed),
    text: Rgb::hex(0x1b1f24),
    dim: Rgb::hex(0x4f5762),
    soft: Rgb::hex(0xd9dde2),
    edge: Rgb::hex(0x7d8590),
    accent: Rgb::hex(0x0b5cad),
    on_accent: Rgb::hex(0xffffff),
    second: Rgb::hex(0xa64200),
    good: Rgb::hex(0x11692b),
    fair: Rgb::hex(0x7d4e00),
    bad: Rgb::hex(0xb3131d),
};

/// The dark theme.
pub const DARK: Theme = Theme {
    back: Rgb::hex(0x15181c),
    card: Rgb::hex(0x1d2126),
    side: Rgb::hex(0x101316),
    selected: Rgb::hex(0x223a55),
    hover: Rgb::hex(0x2a3037),
    text: Rgb::hex(0xe6e9ed),
    dim: Rgb::hex(0xadb5bf),
    soft: Rgb::hex(0x363d45),
    edge: Rgb::hex(0x7c8691),
    accent: Rgb::hex(0x7ab8ff),
    on_accent: Rgb::hex(0x10151b),
    second: Rgb::hex(0xffab70),
    good: Rgb::hex(0x6fd68b),
    fair: Rgb::hex(0xf0bd5e),
    bad: Rgb::hex(0xff9090),
};

/// Preference of a desktop for dark or light windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorScheme {
    Light,
    Dark,
}

/// Choice of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeChoice {
    /// As the desktop prefers. If it has no preference, the window is light.
    #[default]
    Desktop,
    Light,
    Dark,
}

impl ThemeChoice {
    /// All choices.
    pub const ALL: [ThemeChoice; 3] = [ThemeChoice::Desktop, ThemeChoice::Light, ThemeChoice::Dark];

    /// Returns the colours. `desktop`: preference of the desktop, if it has one.
    pub fn theme(self, desktop: Option<ColorScheme>) -> Theme {
        match (self, desktop) {
            (ThemeChoice::Dark, _) | (ThemeChoice::Desktop, Some(ColorScheme::Dark)) => DARK,
            (ThemeChoice::Light | ThemeChoice::Desktop, _) => LIGHT,
        }
    }

    /// Returns the word in the file of settings.
    pub fn name(self) -> &'static str {
        match self {
            ThemeChoice::Desktop => "desktop",
            ThemeChoice::Light => "light",
            ThemeChoice::Dark => "dark",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_that_of_the_standard() {
        let (black, white) = (Rgb(0, 0, 0), Rgb(255, 255, 255));
        assert!((black.contrast(white) - 21.0).abs() < 0.01);
        assert!((white.contrast(Rgb(118, 118, 118)) - 4.54).abs() < 0.01);
    }

    #[test]
    fn colours_are_mixed() {
        let (one, two) = (Rgb(0, 100, 200), Rgb(200, 100, 0));
        for (percent, expected) in [(0, one), (50, Rgb(100, 100, 100)), (100, two), (900, two)] {
            assert_eq!(one.mixed(two, percent), expected);
        }
    }

    #[test]
    fn a_choice_overrides_the_desktop() {
        let wishes = [None, Some(ColorScheme::Light), Some(ColorScheme::Dark)];
        assert!(wishes.iter().all(|wish| ThemeChoice::Light.theme(*wish) == LIGHT));
        assert!(wishes.iter().all(|wish| ThemeChoice::Dark.theme(*wish) == DARK));
        assert_eq!(
            wishes.map(|wish| ThemeChoice::Desktop.theme(wish)),
            [LIGHT, LIGHT, DARK]
        );
    }

    #[test]
    fn text_and_parts_have_enough_contrast() {
        for theme in [LIGHT, DARK] {
            let grounds = [theme.back, theme.card, theme.side, theme.selected, theme.hover];
            for (at, ground) in grounds.into_iter().enumerate() {
                for text in [theme.text, theme.dim] {
                    assert!(
                        text.contrast(ground) >= 4.5,
                        "{text:?} on {at}: {}",
                        text.contrast(ground)
                    );
                }
                assert!(theme.accent.contrast(ground) >= 3.0, "accent on {at}");
            }
            for ground in [theme.back, theme.card, theme.selected, theme.hover] {
                for text in [theme.good, theme.fair, theme.bad, theme.accent] {
                    assert!(text.contrast(ground) >= 4.5, "{text:?} on {ground:?}");
                }
            }
            assert!(theme.on_accent.contrast(theme.accent) >= 4.5);
            for ground in [theme.back, theme.card] {
                assert!(theme.edge.contrast(ground) >= 3.0 && theme.second.contrast(ground) >= 3.0);
            }
        }
    }
}
