//! One open stream.

use super::super::notifications::NotificationView;
use super::room::RoomEventView;
use super::tail::Numbered;
use crate::app::App;
use crate::values::time::now;
use bytes::Bytes;
use carillon_core::model::{DomainId, Event, EventFilter, EventType, KeyId, Trace, UnixMs};
use carillon_core::ports::store::notifications::Events;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};

/// One open stream.
pub(super) struct Reader {
    pub(super) app: App,
    pub(super) domain: Option<(DomainId, Arc<str>)>,
    pub(super) wanted: EventFilter,
    /// Whether what was said in rooms is told.
    pub(super) contents: bool,
    /// What is told once.
    pub(super) feed: broadcast::Receiver<Arc<Trace>>,
    /// How far the newest events were read.
    pub(super) tail: watch::Receiver<u64>,
    /// The number of the last event that was dealt with.
    pub(super) after: u64,
    pub(super) key: KeyId,
    pub(super) deletions: broadcast::Receiver<KeyId>,
    /// When the key's time is over.
    pub(super) expires: Option<UnixMs>,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// What the stream begins with: from where the client goes on if it is cut now.
    pub(super) fn opening(&self) -> Vec<u8> {
        format!(": following\nid: {}\n\n", self.after).into_bytes()
    }

    /// The next frames, as many as are there; none when the node closes, the key is deleted or expires, or the domain is gone.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut frames = Vec::new();
            // First what was told before the ends that are read now.
            self.told(&mut frames)?;
            if frames.is_empty() {
                self.read(&mut frames).await;
            }
            if !frames.is_empty() {
                return Some(frames.into());
            }
            let left =
                self.expires.map_or(KEEP_ALIVE, |at| Duration::from_millis(at.0.saturating_sub(now().0)));
            if left.is_zero() {
                return None;
            }
            let Reader { feed, tail, key, deletions, closing, .. } = self;
            tokio::select! {
                biased;
                trace = feed.recv() => {
                    tell(&mut frames, &trace)?;
                    return Some(frames.into());
                }
                changed = tail.changed() => changed.ok()?,
                deleted = deletions.recv() => match deleted {
                    Ok(deleted) if deleted != *key => {}
                    // Its own key; or it lost count of the deletions, and ends rather than outlive its key.
                    _ => return None,
                },
                _ = closing.wait_for(|closing| *closing) => return None,
                () = tokio::time::sleep(left), if left < KEEP_ALIVE => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    return Some(format!(": still here\nid: {}\n\n", self.after).into());
                }
            }
        }
    }

    /// Appends what the feed has told; none when it is at its end.
    fn told(&mut self, frames: &mut Vec<u8>) -> Option<()> {
        for _ in 0..FRAMES_MAX {
            match self.feed.try_recv() {
                Ok(trace) => tell(frames, &Ok(trace))?,
                Err(TryRecvError::Lagged(count)) => tell(frames, &Err(RecvError::Lagged(count)))?,
                // That nothing more will come is found out when it is waited for.
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Some(())
    }

    /// Appends the events that come next.
    async fn read(&mut self, frames: &mut Vec<u8>) {
        let read = *self.tail.borrow_and_update();
        if read <= self.after {
            return;
        }
        match self.app.tail().after(self.after, usize::from(FRAMES_MAX)) {
            Some(events) => {
                let is_all = events.len() < usize::from(FRAMES_MAX);
                let last = events.last().map_or(read, |(number, _)| *number);
                events
                    .iter()
                    .filter(|(_, event)| self.is_wanted(event))
                    .for_each(|event| self.write(frames, event));
                self.after = if is_all { read.max(last) } else { last };
            }
            None => self.read_from_store(frames).await,
        }
        if self.after < read {
            self.tail.mark_changed();
        }
    }

    /// Appends events that are not in memory any more.
    async fn read_from_store(&mut self, frames: &mut Vec<u8>) {
        let domain = self.domain.as_ref().map(|(domain, _)| *domain);
        let question = Events { after: self.after, domain, wanted: self.wanted, max: FRAMES_MAX };
        let Ok(answer) = self.app.ask(question).await else {
            tokio::time::sleep(PAUSE).await;
            return;
        };
        if let Some(next) = answer.next_after_gap(self.after) {
            gap(frames, self.after, next);
            self.after = next - 1;
        }
        for (number, event) in answer.events {
            self.write(frames, &(number, Arc::new(event)));
        }
        self.after = self.after.max(answer.examined);
    }

    fn is_wanted(&self, event: &Event) -> bool {
        self.domain.as_ref().is_none_or(|(id, name)| event.is_of(*id, name)) && self.wanted.takes(event)
    }

    fn write(&self, frames: &mut Vec<u8>, (number, event): &Numbered) {
        frames.extend_from_slice(format!("id: {number}\n").as_bytes());
        match &**event {
            Event::Notification(trace) => notification(frames, trace),
            Event::Room(fact, said) => {
                let kind = event.kind();
                let view = RoomEventView::new(kind, fact, said.as_ref(), self.contents);
                frame(frames, kind.as_str(), &view);
            }
        }
    }
}

/// Appends that events are missing, those between two numbers.
pub(super) fn gap(frames: &mut Vec<u8>, after: u64, next: u64) {
    let gap = format!("event: gap\ndata: {{\"after\":{after},\"next\":{next}}}\n\n");
    frames.extend_from_slice(gap.as_bytes());
}

/// Appends what a feed says; none when it is at its end.
fn tell(frames: &mut Vec<u8>, said: &Result<Arc<Trace>, RecvError>) -> Option<()> {
    match said {
        Ok(trace) => notification(frames, trace),
        Err(RecvError::Lagged(count)) => {
            let lagged = format!("event: lagged\ndata: {{\"count\":{count}}}\n\n");
            frames.extend_from_slice(lagged.as_bytes());
        }
        Err(RecvError::Closed) => return None,
    }
    Some(())
}

fn notification(frames: &mut Vec<u8>, trace: &Trace) {
    frame(frames, EventType::Notification.as_str(), &NotificationView::from(trace));
}

fn frame(frames: &mut Vec<u8>, name: &str, data: &impl serde::Serialize) {
    frames.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    // JSON as it is written here has no line ends.
    serde_json::to_writer(&mut *frames, data).expect("an event is strings and numbers");
    frames.extend_from_slice(b"\n\n");
}

const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After how long the store is asked again that did not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// Frames that travel together when they are there together.
const FRAMES_MAX: u16 = 256;
