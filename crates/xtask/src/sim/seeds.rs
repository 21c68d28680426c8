//! The fixed seeds: with the defect put back that is named above it, each shows it.

use carillon_core::sim::program::Mix;

/// A program by all that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) seed: u64,
    pub(super) steps: u64,
    pub(super) mix: Mix,
    /// How many nodes there are.
    pub(super) nodes: u16,
}

/// Programs that showed something that is mended; docs/reliability.md says by which commit.
pub(super) const FIXED: &[Fixed] = &[
    // What has not arrived is acknowledged with what has: notifications.
    Fixed { seed: 100255, steps: 400, mix: Mix::Living, nodes: 1 },
    // The same: messages.
    Fixed { seed: 100789, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // A session without presence is not told that something was stored: notifications.
    Fixed { seed: 100038, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // The same: messages.
    Fixed { seed: 100258, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // A page that comes while the session is unavailable is dropped.
    Fixed { seed: 100493, steps: 400, mix: Mix::Notifying, nodes: 1 },
    // A page that the store could not give is not asked for again.
    Fixed { seed: 100768, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // What waits is written faster than the socket takes it.
    Fixed { seed: 100803, steps: 400, mix: Mix::Notifying, nodes: 1 },
    // An end that the store refuses is forgotten.
    Fixed { seed: 100405, steps: 400, mix: Mix::Living, nodes: 1 },
    // A deletion of messages that the store refuses is forgotten.
    Fixed { seed: 100579, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // A page is read while an acknowledgement is being committed, and given.
    // A page brings a notification whose end was committed meanwhile.
    Fixed { seed: 100018, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // A message that one session did not acknowledge goes to others that have it.
    Fixed { seed: 100128, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // Newer ones overtake a backlog between two pages.
    Fixed { seed: 20, steps: 400, mix: Mix::Crashing, nodes: 1 },
    // What is dropped as it is stored is said to be stored.
    Fixed { seed: 100028, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // Traces that are gone push out those that wait (a bound of 12).
    // An acknowledgement is told before it is committed.
    // `stored` is told after `sent` or an end.
    Fixed { seed: 20, steps: 400, mix: Mix::Notifying, nodes: 1 },
    // What expired on its way is told as acknowledged.
    Fixed { seed: 100398, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // What was replaced on its way is told as acknowledged.
    Fixed { seed: 100515, steps: 400, mix: Mix::Living, nodes: 1 },
    // A due notification for who is there ends without a trace.
    Fixed { seed: 20, steps: 400, mix: Mix::Living, nodes: 1 },
    // `sent` goes back to `stored` when the connection ends.
    Fixed { seed: 100003, steps: 400, mix: Mix::Notifying, nodes: 1 },
    // A page brings a message whose deletion was committed meanwhile.
    Fixed { seed: 100026, steps: 400, mix: Mix::Chatting, nodes: 1 },
    // A repeated line of a batch is delivered again.
    // What waits is ordered by the clock.
    Fixed { seed: 100009, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // `stored` is told after an end, of which nothing is remembered while the store is asked.
    Fixed { seed: 100079, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // A due notification that is handed over twice is given or dropped after its end.
    // The same, where its state was read before its end.
    Fixed { seed: 100075, steps: 400, mix: Mix::Living, nodes: 1 },
    // What expired while it was stored is given.
    Fixed { seed: 100045, steps: 400, mix: Mix::Living, nodes: 1 },
    // One is given while its cancellation is committed.
    Fixed { seed: 100305, steps: 400, mix: Mix::Living, nodes: 1 },
    // `sent` goes back to `stored` when the store refuses to note it.
    Fixed { seed: 102955, steps: 400, mix: Mix::Living, nodes: 1 },
    // Its end was seen, and then `sent` from memory (with the next mend taken out, too, which hides it).
    // The answer that one is stored gives it while its cancellation is committed.
    Fixed { seed: 101905, steps: 400, mix: Mix::Living, nodes: 1 },
    // One whose state could not be read is not given to who is there.
    // A due notification whose state could not be read stays stored for good.
    Fixed { seed: 100648, steps: 400, mix: Mix::Crowding, nodes: 1 },
    // A message overtakes those that are being stored.
    Fixed { seed: 100006, steps: 400, mix: Mix::Chatting, nodes: 1 },
    // `<a h>` counts what was routed.
    // A message counts as safe when the store is asked to keep it.
    Fixed { seed: 100059, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // An acknowledgement was forgotten while a cancellation was under way that then failed.
    Fixed { seed: 4_000_014_879, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // A due notification for who is there was passed over for the same reason, and stayed stored for good.
    Fixed { seed: 3_000_009_285, steps: 400, mix: Mix::Living, nodes: 1 },
    // The end of one was read, and then a state before it, because the store did not answer.
    Fixed { seed: 45_945_033_338_429, steps: 400, mix: Mix::Jumping, nodes: 1 },
    // What is kept was given to one session by a page, and newer ones to the others before it.
    Fixed { seed: 139_151, steps: 400, mix: Mix::Returning, nodes: 1 },
    Fixed { seed: 236_991, steps: 400, mix: Mix::Returning, nodes: 1 },
    // One that was cancelled while it waited with a parked session was sent when that was resumed.
    Fixed { seed: 104_495, steps: 400, mix: Mix::Returning, nodes: 1 },
    // A message that another session acknowledged was sent again when the session was resumed.
    Fixed { seed: 101_430, steps: 400, mix: Mix::Returning, nodes: 1 },
    // A message that was stored when the connection was lost came from there, too.
    Fixed { seed: 102_384, steps: 400, mix: Mix::Returning, nodes: 1 },
    // What is known of notifications that nobody stores did not go along in a live upgrade, nor in a restart.
    Fixed { seed: 100_003, steps: 400, mix: Mix::Upgrading, nodes: 1 },
    Fixed { seed: 100_424, steps: 400, mix: Mix::Restarting, nodes: 1 },
    // Chat messages that were not acknowledged were not stored before a live upgrade.
    Fixed { seed: 100_264, steps: 400, mix: Mix::Upgrading, nodes: 1 },
    // A page that was asked for before the connection was lost brought what was being stored for its session.
    Fixed { seed: 30_000_059_129, steps: 400, mix: Mix::Upgrading, nodes: 1 },
    // A login that was read before a change of the account's record took it for empty, for good.
    Fixed { seed: 42_333_834_353_419, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    // A push told of an older roster than the one that the client had been shown.
    Fixed { seed: 184_713_544_495_607, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    // A stanza that still waited when a second connection was lost counted twice, so that the next one was taken for its repetition.
    Fixed { seed: 183_130_300_641_104, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    // A change of a record was not told to an account without a session, whose record was being read for somebody else.
    Fixed { seed: 221_658_506_990_969, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    // An answer to a question that the process before had asked was not taken.
    Fixed { seed: 219_668_966_452_986, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // What was published between two changes of a record was told before the first of them.
    Fixed { seed: 79_353_904_538_055, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // The first change of a record in a new process was taken for one that the sessions knew.
    Fixed { seed: 129_052_548_110_595, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // A record lacked changes that a login had read before they came.
    Fixed { seed: 192_924_329_301_255, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // A slow answer to an earlier read of a record took the place of a newer one.
    Fixed { seed: 126_179_282_736_243, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    Fixed { seed: 162_327_026_721_380, steps: 400, mix: Mix::Reuniting, nodes: 1 },
    // What a new contact had published was asked for before the contact's home knew of the subscription.
    Fixed { seed: 157_560_104_391_186, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // A session that was parked when the node restarted came back with the roster of before.
    Fixed { seed: 42_066_772_199_358, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // What the first contact of an account had published was not given to a session that had come from another process.
    Fixed { seed: 180_801_792_600_200, steps: 400, mix: Mix::Sharing, nodes: 1 },
    // What was sent to the full address of a resumed session overtook what had been stored for it.
    Fixed { seed: 100_015, steps: 400, mix: Mix::Addressing, nodes: 1 },
    // Two that were wrong themselves: a message that somebody did not take was taken for one that was overtaken, after a crash.
    Fixed { seed: 1_000_003_897, steps: 400, mix: Mix::Breaking, nodes: 1 },
    Fixed { seed: 2_000_003_367, steps: 400, mix: Mix::Breaking, nodes: 1 },
    // An item that was on its way to a session came after a newer last item, which a second subscription had brought.
    Fixed { seed: 245_829_079_829_197, steps: 400, mix: Mix::Following, nodes: 2 },
];
