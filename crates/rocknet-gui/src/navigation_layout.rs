//! Layout of the navigation, which the window draws, and by which tests from outside find its entries.

/// Width of the navigation in pixels.
pub const WIDTH: i32 = 190;

/// Height of the state of the server below the entries.
pub const STATE: i32 = 92;

/// Height of the name of the program above the entries.
const BRAND: i32 = 64;

/// Height of an entry, and its minimum in a low window.
const ENTRY: i32 = 36;
const MIN_ENTRY: i32 = 24;

/// Space between two entries, and at their sides.
const SPACE: i32 = 2;
const SIDE: i32 = 10;

/// Area of an entry in pixels, from the upper left corner of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryArea {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

impl EntryArea {
    /// Returns the center, from the upper left corner of the navigation.
    pub fn center(&self) -> (i32, i32) {
        (self.x + self.w / 2, self.y + self.h / 2)
    }
}

/// Returns the areas of the entries in a navigation of this height, from the top.
pub fn entries(height: i32, count: usize) -> impl Iterator<Item = EntryArea> {
    let room = (height - BRAND - STATE) / (count as i32).max(1);
    let h = (room - SPACE).clamp(MIN_ENTRY, ENTRY);
    (0..count as i32).map(move |place| EntryArea {
        x: SIDE,
        y: BRAND + place * (h + SPACE),
        w: WIDTH - 2 * SIDE,
        h,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::PageName;

    #[test]
    fn entries_fit_between_the_name_and_the_state() {
        let count = PageName::NAVIGATION.len();
        // Heights of the smallest window, of one that leaves some room, of the window at the first start, and above.
        for (height, entry) in [(480, 25), (600, 35), (720, 36), (1_000, 36)] {
            let areas: Vec<EntryArea> = entries(height, count).collect();
            assert_eq!((areas.len(), areas[0].y, areas[0].h), (count, BRAND, entry), "{height}");
            assert!(areas.windows(2).all(|pair| pair[0].y + pair[0].h < pair[1].y));
            let last = areas[count - 1];
            assert!(last.y + last.h <= height - STATE, "{height}");
            let (x, y) = last.center();
            assert!((last.x..last.x + last.w).contains(&x) && (last.y..last.y + last.h).contains(&y));
        }
        assert_eq!(entries(720, 0).count(), 0);
    }
}
