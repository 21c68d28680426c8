/** A player of real-time matches of Carillon, in browsers and Node. @module */
export { type EndReason, type Mode, type SeatState, type Welcome, Malformed, seatsOf } from "./frames.js";
export { type Ended, type MatchOptions, type Rtt, type State, type Tick, Match, MatchError } from "./match.js";
