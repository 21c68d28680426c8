//! Several cells behind one front: what the front knows of each, which of them a device is in, and how a device moves. Pure, so that every
//! store and the front decide the same.

use super::{NotificationId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use sha2::{Digest, Sha256};
use std::fmt;

/// A cell as its front knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRecord {
    /// Its name, which no other cell has.
    pub name: Box<str>,
    /// How much of the new devices it is given, compared with the other cells; 0 for none.
    pub weight: u32,
    /// The URL of its HTTP API.
    pub url: Box<str>,
    /// The API key that the front has there.
    pub key: CellKey,
    /// Where its devices connect.
    pub endpoints: CellEndpoints,
    /// Whether its devices move to other cells.
    pub drain: Draining,
    /// How many of them may begin to move per second.
    pub rate: u32,
}

/// An API key of another node. It reaches no log.
#[derive(Clone, PartialEq, Eq)]
pub struct CellKey(pub Box<str>);

impl fmt::Debug for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CellKey(..)")
    }
}

/// Where the devices of a cell connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellEndpoints {
    /// Host name for TCP.
    pub host: Option<Box<str>>,
    /// Port for XMPP over TCP with STARTTLS.
    pub c2s_port: Option<u16>,
    /// Port for XMPP over direct TLS (XEP-0368).
    pub c2s_tls_port: Option<u16>,
    /// URL for XMPP over WebSocket (RFC 7395).
    pub websocket_url: Option<Box<str>>,
}

/// Whether the devices of a cell move to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draining {
    /// They stay.
    #[default]
    Off,
    /// They move.
    Running,
    /// They are to move; none begins to.
    Paused,
}

impl CellRecord {
    /// The weight by which devices are given to it: none while its own move away.
    pub fn weight_now(&self) -> u32 {
        if self.drain == Draining::Off { self.weight } else { 0 }
    }
}

/// The cell that a device is given, by weighted rendezvous: the highest of `-weight / ln(h)`, where `h` is a hash of cell and device between 0 and 1.
/// Each cell is given devices by its share of the weights, and where a weight changes only devices of that cell are given to another, or only that cell is
/// given others. None where no cell has a weight.
pub fn choose<'a>(
    cells: impl IntoIterator<Item = &'a CellRecord>,
    device: &BareJid,
) -> Option<&'a CellRecord> {
    let weighted = cells.into_iter().filter(|cell| cell.weight_now() > 0);
    let scored = weighted.map(|cell| (score(cell, device), cell));
    // Names settle what is equal, so that the order of the list does not matter.
    scored
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.name.cmp(&other.name)))
        .map(|(_, cell)| cell)
}

fn score(cell: &CellRecord, device: &BareJid) -> f64 {
    -f64::from(cell.weight_now()) / hash(&cell.name, device.as_str()).ln()
}

/// A number between 0 and 1, neither of the two, which is the same everywhere.
fn hash(cell: &str, device: &str) -> f64 {
    let digest = Sha256::new().chain_update(cell).chain_update([0]).chain_update(device).finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // As many bits as a double has exactly.
    ((number >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Which cell a device is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The device.
    pub device: BareJid,
    /// The cell that it is in.
    pub cell: Box<str>,
    /// Counts its changes: who knows of another one knows too little.
    pub generation: u64,
    /// Whether it moves, and how far it has come.
    pub moving: Moving,
    /// Whether it may log in when its move is over: not if it was disabled before.
    pub enables: bool,
}

/// How far a device has come that moves to another cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Moving {
    /// It does not move.
    #[default]
    No,
    /// It is copied to this cell. What is sent to it is held.
    To(Box<str>),
    /// It is in its new cell, and is still to be enabled there and removed from this one.
    From(Box<str>),
}

/// A step of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// It is to move.
    Begin {
        /// To this cell.
        to: Box<str>,
        /// Whether it may log in when the move is over.
        enables: bool,
    },
    /// All of it is in the cell that it moves to: from now on it is there.
    Arrive,
    /// It is removed from the cell that it was in.
    Finish,
    /// It stays where it is.
    GiveUp,
}

impl Placement {
    /// The placement after a step, if that can be taken from this one.
    pub fn after(&self, step: &MoveStep) -> Option<Placement> {
        let mut enables = self.enables;
        let (cell, moving) = match (step, &self.moving) {
            (MoveStep::Begin { to, enables: wanted }, Moving::No) if *to != self.cell => {
                enables = *wanted;
                (self.cell.clone(), Moving::To(to.clone()))
            }
            (MoveStep::Arrive, Moving::To(to)) => (to.clone(), Moving::From(self.cell.clone())),
            (MoveStep::Finish, Moving::From(_)) | (MoveStep::GiveUp, Moving::To(_)) => {
                (self.cell.clone(), Moving::No)
            }
            _ => return None,
        };
        Some(Placement {
            device: self.device.clone(),
            cell,
            generation: self.generation + 1,
            moving,
            enables,
        })
    }

    /// Whether this is what the step made of the placement of generation `before`.
    pub fn is_after(&self, step: &MoveStep, before: u64) -> bool {
        let fits = match (step, &self.moving) {
            (MoveStep::Begin { to, enables }, Moving::To(other)) => to == other && *enables == self.enables,
            (MoveStep::Arrive, Moving::From(_)) => true,
            (MoveStep::Finish | MoveStep::GiveUp, Moving::No) => true,
            _ => false,
        };
        fits && self.generation == before + 1
    }
}

/// A request to a cell that the front has accepted and the cell has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRequest {
    /// Its place: requests of one series are given to their cell in this order.
    pub seq: u64,
    /// The id by which the cell knows it when it comes again.
    pub id: NotificationId,
    /// The cell.
    pub cell: Box<str>,
    /// What keeps its order: requests of other series may pass it.
    pub series: Box<str>,
    /// The device that it is for: it follows the device to another cell.
    pub device: Option<BareJid>,
    /// The path and query of the request, a `POST`.
    pub path: Box<str>,
    /// Its body, JSON.
    pub body: Bytes,
    /// When it is not wanted any more.
    pub expires: UnixMs,
}

impl HeldRequest {
    /// What it counts for among what may be held for a cell, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.series.len() + self.path.len() + self.body.len()) as u64 + HELD_BYTES
    }
}

/// What a held request takes beside its texts, in bytes.
const HELD_BYTES: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn cell(name: &str, weight: u32) -> CellRecord {
        CellRecord {
            name: name.into(),
            weight,
            url: "http://127.0.0.1:1".into(),
            key: CellKey("crl_secret".into()),
            endpoints: CellEndpoints::default(),
            drain: Draining::Off,
            rate: 1,
        }
    }

    fn device(n: u32) -> BareJid {
        BareJid::new(&format!("d{n}@example.org")).expect("a JID")
    }

    fn chosen(cells: &[CellRecord], devices: u32) -> Vec<Box<str>> {
        (0..devices).map(|n| choose(cells, &device(n)).expect("a weight").name.clone()).collect()
    }

    fn counts(chosen: &[Box<str>]) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        chosen.iter().for_each(|name| *counts.entry(&**name).or_default() += 1);
        counts
    }

    #[test]
    fn of_100_000_devices_each_cell_is_given_its_share_within_2_percent() {
        for weights in [&[1, 1][..], &[1, 2, 5], &[100, 300, 100, 500], &[7]] {
            let cells: Vec<_> =
                weights.iter().enumerate().map(|(n, w)| cell(&format!("cell-{n}"), *w)).collect();
            let chosen = chosen(&cells, 100_000);
            let all: u32 = weights.iter().sum();
            for (name, count) in counts(&chosen) {
                let weight = cells.iter().find(|cell| *cell.name == *name).expect("a cell").weight;
                let share = f64::from(count) / 100_000.0;
                let wanted = f64::from(weight) / f64::from(all);
                assert!((share - wanted).abs() < 0.02 * wanted, "{name}: {share}, not {wanted}");
            }
        }
    }

    #[test]
    fn a_change_of_a_weight_moves_only_what_it_must() {
        const DEVICES: u32 = 20_000;
        let cells = [cell("a", 100), cell("b", 100), cell("c", 100)];
        let before = chosen(&cells, DEVICES);
        let more = [cell("a", 100), cell("b", 150), cell("c", 100)];
        let less = [cell("a", 100), cell("b", 50), cell("c", 100)];
        let one_more = [cell("a", 100), cell("b", 100), cell("c", 100), cell("d", 100)];
        let drained =
            [cell("a", 100), CellRecord { drain: Draining::Running, ..cell("b", 100) }, cell("c", 100)];
        for (after, moves) in
            [(&more[..], "to b"), (&less, "from b"), (&one_more, "to d"), (&drained, "from b")]
        {
            let after = chosen(after, DEVICES);
            let moved: Vec<_> = before.iter().zip(&after).filter(|(old, new)| old != new).collect();
            assert!(!moved.is_empty(), "{moves}");
            for (old, new) in moved {
                assert!(
                    format!("to {new}") == moves || format!("from {old}") == moves,
                    "{old} {new}: {moves}"
                );
            }
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter_and_without_weights_there_is_none() {
        let cells = [cell("a", 3), cell("b", 1), cell("c", 0)];
        let mut turned = cells.clone();
        turned.reverse();
        assert_eq!(chosen(&cells, 1000), chosen(&turned, 1000));
        assert!(!chosen(&cells, 1000).contains(&"c".into()));
        assert_eq!(choose(&cells[2..], &device(1)), None);
        assert_eq!(choose(&[], &device(1)), None);
        // Devices that are not pinned yet must be given to the same cell by another release.
        assert_eq!(counts(&chosen(&cells, 1000)), [("a", 753), ("b", 247)].into());
    }

    #[test]
    fn a_move_goes_step_by_step() {
        let still = Placement {
            device: device(1),
            cell: "a".into(),
            generation: 7,
            moving: Moving::No,
            enables: true,
        };
        let begin = MoveStep::Begin { to: "b".into(), enables: false };
        let copying = still.after(&begin).expect("it begins");
        assert_eq!((&*copying.cell, copying.generation, &copying.moving), ("a", 8, &Moving::To("b".into())));
        let arrived = copying.after(&MoveStep::Arrive).expect("it arrives");
        assert_eq!(
            (&*arrived.cell, arrived.generation, &arrived.moving),
            ("b", 9, &Moving::From("a".into()))
        );
        let there = arrived.after(&MoveStep::Finish).expect("it ends");
        assert_eq!((&*there.cell, there.generation, &there.moving), ("b", 10, &Moving::No));
        let stayed = copying.after(&MoveStep::GiveUp).expect("it is given up");
        assert_eq!((&*stayed.cell, &stayed.moving), ("a", &Moving::No));
        assert!(!there.enables && !stayed.enables, "it was disabled before");
        for (placement, step) in [
            (&still, MoveStep::Begin { to: "a".into(), enables: true }),
            (&still, MoveStep::Arrive),
            (&still, MoveStep::Finish),
            (&copying, begin.clone()),
            (&copying, MoveStep::Finish),
            (&arrived, MoveStep::GiveUp),
        ] {
            assert_eq!(placement.after(&step), None, "{placement:?} {step:?}");
        }
        for (placement, step, before) in [
            (&copying, begin, 7),
            (&arrived, MoveStep::Arrive, 8),
            (&there, MoveStep::Finish, 9),
            (&stayed, MoveStep::GiveUp, 8),
        ] {
            assert!(placement.is_after(&step, before) && !placement.is_after(&step, before + 1));
        }
    }

    #[test]
    fn the_key_of_a_cell_is_not_printed() {
        assert!(!format!("{:?}", cell("a", 1)).contains("crl_secret"));
    }
}
