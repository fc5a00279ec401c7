//! Tests of the send queue: its data leaves complete and in order, however it is queued and sent.

use super::*;

/// Drains `queue` in steps of at most `step` bytes. After every `moves` steps, moves the remaining data to a new
/// queue.
fn drain(mut queue: SendQueue, step: usize, moves: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut steps = 0;
    while !queue.is_empty() {
        let before = queue.len();
        let taken = if let Some(bytes) = queue.contiguous() {
            let taken = bytes.len().min(step);
            out.extend_from_slice(&bytes[..taken]);
            taken
        } else {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let (count, _) = queue.slices(&mut slices);
            let bytes = slices[..count].iter().flat_map(|slice| slice.iter().copied());
            let length = out.len();
            out.extend(bytes.take(step));
            out.len() - length
        };
        assert!(taken > 0);
        queue.advance(taken);
        assert_eq!(queue.len(), before - taken as u64);
        steps += 1;
        if steps % moves == 0 {
            queue = queue.take_rest();
        }
    }
    assert_eq!(queue.len(), 0);
    out
}

#[test]
fn keeps_order_when_sent_in_parts() {
    let large: SharedBytes = Rc::new(vec![b's'; COPY_BELOW + 10]);
    for step in [1, 7, 4096, 1 << 20] {
        for moves in [1, 3, usize::MAX] {
            let mut queue = SendQueue::default();
            let mut expected = Vec::new();
            for round in 0..5u8 {
                queue.buffer().extend_from_slice(&[b'a' + round; 50]);
                expected.extend_from_slice(&[b'a' + round; 50]);
                queue.push_shared(&large, 5, COPY_BELOW + 5);
                expected.extend_from_slice(&[b's'; COPY_BELOW]);
                queue.push_owned(Bytes::from(vec![b'0' + round; COPY_BELOW * 2]));
                expected.extend_from_slice(&vec![b'0' + round; COPY_BELOW * 2]);
                queue.push_owned(Bytes::from_static(b"small"));
                expected.extend_from_slice(b"small");
            }
            assert_eq!(queue.len(), expected.len() as u64);
            assert!(drain(queue, step, moves) == expected, "step {step} moves {moves}");
        }
    }
}

#[test]
fn a_value_is_kept_until_all_data_has_been_sent() {
    let body: SharedBytes = Rc::new(vec![b's'; COPY_BELOW]);
    for has_segments in [false, true] {
        for is_moved in [false, true] {
            let value = Rc::new(());
            let mut queue = SendQueue::default();
            queue.keep_until_sent(Rc::clone(&value) as Rc<dyn Any>);
            assert_eq!(Rc::strong_count(&value), 1, "an empty queue keeps nothing");
            queue.buffer().extend_from_slice(b"head");
            if has_segments {
                queue.push_shared(&body, 0, COPY_BELOW);
            }
            queue.keep_until_sent(Rc::clone(&value) as Rc<dyn Any>);
            queue.buffer().extend_from_slice(b"later");
            if is_moved {
                queue = queue.take_rest();
            }
            while queue.len() > 1 {
                let front = queue.front().map_or(0, <[u8]>::len);
                queue.advance(front.min(queue.len() as usize - 1));
                assert!(queue.keeps_values());
                assert_eq!(Rc::strong_count(&value), 2, "{} bytes are left", queue.len());
            }
            queue.advance(1);
            assert!(!queue.keeps_values());
            assert_eq!(Rc::strong_count(&value), 1, "everything was sent");
        }
    }
    let value = Rc::new(());
    let mut queue = SendQueue::from(b"head".to_vec());
    queue.keep_until_sent(Rc::clone(&value) as Rc<dyn Any>);
    queue.clear();
    assert_eq!(Rc::strong_count(&value), 1, "the data was discarded");
}

#[test]
fn appending_while_sending_keeps_order() {
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(b"hello ");
    queue.advance(3);
    queue.push_owned(Bytes::from(vec![b'x'; COPY_BELOW]));
    queue.buffer().extend_from_slice(b"end");
    let mut expected = b"lo ".to_vec();
    expected.extend_from_slice(&[b'x'; COPY_BELOW]);
    expected.extend_from_slice(b"end");
    assert!(drain(queue, 100, usize::MAX) == expected);
}

#[cfg(unix)]
#[test]
fn has_data_after_file_sees_every_segment() {
    let file = Arc::new(File::open("/dev/null").unwrap());
    // H is a head, F a range of a file, and M memory by reference.
    for (parts, expected) in [
        ("", false),
        ("H", false),
        ("HF", false),
        ("HM", false),
        ("HFH", true),
        ("FF", true),
        ("FM", true),
        ("HFHM", true),
        ("MHF", false),
    ] {
        let mut queue = SendQueue::default();
        for part in parts.bytes() {
            match part {
                b'H' => queue.buffer().extend_from_slice(b"head"),
                b'F' => queue.push_file(Arc::clone(&file), 0, 10),
                _ => queue.push_owned(Bytes::from(vec![b'm'; COPY_BELOW])),
            }
        }
        assert_eq!(queue.has_data_after_file(), expected, "{parts}");
    }
}
