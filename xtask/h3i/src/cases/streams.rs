//! Unidirectional streams: their types, their number and their end.

use crate::actions::{
    CONTROL, FILE_CONTENT, REQUEST, RESERVED, SECOND, SERVER_CONTROL, THIRD, bytes, get, last_bytes, open, pause,
    wait_for_end,
};
use crate::case::{Case, Expected};
use crate::error_code::ErrorCode;
use h3i::actions::h3::Action;
use h3i::{
    HTTP3_CONTROL_STREAM_TYPE_ID, HTTP3_PUSH_STREAM_TYPE_ID, QPACK_DECODER_STREAM_TYPE_ID, QPACK_ENCODER_STREAM_TYPE_ID,
};

pub fn cases() -> Vec<Case> {
    let creation = || Expected::ConnectionError(ErrorCode::StreamCreationError);
    let closed = || Expected::ConnectionError(ErrorCode::ClosedCriticalStream);
    let file = || Expected::body(FILE_CONTENT);
    let reset = |stream| Action::ResetStream {
        stream_id: stream,
        error_code: ErrorCode::NoError.number(),
    };
    let stop = |stream| Action::StopSending {
        stream_id: stream,
        error_code: ErrorCode::NoError.number(),
    };
    let (encoder, decoder) = (QPACK_ENCODER_STREAM_TYPE_ID, QPACK_DECODER_STREAM_TYPE_ID);
    let end = |stream| last_bytes(stream, b"");
    let reserved = RESERVED.iter().zip([SECOND, THIRD, THIRD + 4]);
    let mut reserved: Vec<_> = reserved
        .flat_map(|(kind, stream)| [open(stream, *kind), bytes(stream, b"ignored")])
        .collect();
    reserved.push(get(REQUEST));
    let rows: Vec<(&str, &str, Vec<Action>, Expected)> = vec![
        (
            "a second control stream",
            "RFC 9114 §6.2.1",
            vec![open(SECOND, HTTP3_CONTROL_STREAM_TYPE_ID)],
            creation(),
        ),
        (
            "a push stream of the client",
            "RFC 9114 §6.2.2",
            vec![open(SECOND, HTTP3_PUSH_STREAM_TYPE_ID)],
            creation(),
        ),
        (
            "a second encoder stream",
            "RFC 9204 §4.2",
            vec![open(SECOND, encoder), open(THIRD, encoder)],
            creation(),
        ),
        (
            "a second decoder stream",
            "RFC 9204 §4.2",
            vec![open(SECOND, decoder), open(THIRD, decoder)],
            creation(),
        ),
        (
            "the end of the control stream",
            "RFC 9114 §6.2.1",
            vec![end(CONTROL)],
            closed(),
        ),
        (
            "the reset of the control stream",
            "RFC 9114 §6.2.1",
            // A reset discards what was not sent before it.
            vec![get(REQUEST), wait_for_end(REQUEST), reset(CONTROL)],
            closed(),
        ),
        (
            "the end of the encoder stream",
            "RFC 9204 §4.2",
            vec![open(SECOND, encoder), end(SECOND)],
            closed(),
        ),
        (
            "the end of the decoder stream",
            "RFC 9204 §4.2",
            vec![open(SECOND, decoder), end(SECOND)],
            closed(),
        ),
        (
            "STOP_SENDING for the control stream of the server",
            "RFC 9114 §6.2.1",
            // The stream is known to the client after the first response.
            vec![get(REQUEST), wait_for_end(REQUEST), stop(SERVER_CONTROL)],
            closed(),
        ),
        ("streams of reserved types", "RFC 9114 §6.2.3", reserved, file()),
        (
            "a stream that ends before its type",
            "RFC 9114 §6.2",
            vec![end(SECOND), get(REQUEST)],
            file(),
        ),
        (
            "a stream that ends within its type",
            "RFC 9114 §6.2",
            vec![last_bytes(SECOND, b"\x40"), get(REQUEST)],
            file(),
        ),
        (
            "a stream that is reset within its type",
            "RFC 9114 §6.2",
            vec![bytes(SECOND, b"\x40"), pause(), reset(SECOND), get(REQUEST)],
            file(),
        ),
    ];
    let case = |(name, rule, actions, expected)| Case::new(name, rule, actions, expected);
    rows.into_iter().map(case).collect()
}
