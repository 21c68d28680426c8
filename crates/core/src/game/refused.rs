//! What a player is told that is refused.

use carillon_wire::frame::game::{ErrorCode, Malformed};

pub(super) fn code(malformed: Malformed) -> ErrorCode {
    match malformed {
        Malformed::TooLong => ErrorCode::TooLong,
        _ => ErrorCode::Malformed,
    }
}

pub(super) fn text(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Malformed => "this is no frame of carillon-match/1, or not one that may come here",
        ErrorCode::TooLong => "the frame or an input is longer than it may be",
        ErrorCode::BadToken => "the token is not one of this match, seat and account",
        ErrorCode::ExpiredToken => "the token has expired",
        ErrorCode::NoMatch => "there is no such match, or it is over",
        ErrorCode::Left => "the player of this seat has left, or was away for too long",
        ErrorCode::Replaced => "another connection has taken the seat",
        ErrorCode::NotJoined => "the first frame must join a match, and come in time",
        ErrorCode::TooFar => "the input is for a tick that is too far ahead",
        ErrorCode::TooOld => "what you have is older than what the server still has",
        ErrorCode::Idle => "you sent nothing for too long",
        ErrorCode::TooSlow => "you read too slowly",
        ErrorCode::Elsewhere => "the match is on another node",
        ErrorCode::Shutdown => "the node shuts down",
    }
}
