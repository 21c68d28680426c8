//! Which tokens of an account (XEP-0484) were revoked. Tokens are not stored: each is derived from a count that a revocation
//! changes.

/// A client of an account: a hash of the id that it gives itself (XEP-0388 `user-agent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u64);

/// How often the tokens of an account were revoked: those of all clients, and those of single clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations {
    all: u32,
    agents: Vec<(AgentId, u32)>,
}

impl Revocations {
    /// Clients that are counted singly. When another one would exceed this, the tokens of all clients are revoked.
    pub const AGENTS_MAX: usize = 32;

    /// A value that changes whenever the tokens of this client are revoked, and never returns to an earlier value.
    pub fn generation(&self, agent: AgentId) -> u64 {
        let own = self.agents.iter().find(|(id, _)| *id == agent).map_or(0, |(_, n)| *n);
        u64::from(self.all) << 32 | u64::from(own)
    }

    /// Revokes the tokens of one client.
    pub fn revoke(&mut self, agent: AgentId) {
        let is_full = self.agents.len() >= Revocations::AGENTS_MAX;
        match self.agents.iter_mut().find(|(id, _)| *id == agent) {
            Some((_, count)) => *count += 1,
            None if is_full => self.revoke_all(),
            None => self.agents.push((agent, 1)),
        }
    }

    /// Revokes the tokens of every client.
    pub fn revoke_all(&mut self) {
        self.all += 1;
        self.agents = Vec::new();
    }

    /// Whether no token was ever revoked.
    pub fn is_empty(&self) -> bool {
        self.all == 0 && self.agents.is_empty()
    }

    /// The form in which a store keeps it: four bytes, and twelve per client.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.all.to_be_bytes().to_vec();
        for (agent, n) in &self.agents {
            bytes.extend(agent.0.to_be_bytes());
            bytes.extend(n.to_be_bytes());
        }
        bytes
    }

    /// What [`Revocations::to_bytes`] wrote; none for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Revocations> {
        let (all, rest) = bytes.split_first_chunk::<4>()?;
        let (entries, []) = rest.as_chunks::<12>() else { return None };
        let entry = |bytes: &[u8; 12]| {
            let (agent, n) = bytes.split_first_chunk::<8>()?;
            Some((AgentId(u64::from_be_bytes(*agent)), u32::from_be_bytes(n.try_into().ok()?)))
        };
        let agents = entries.iter().map(entry).collect::<Option<_>>()?;
        Some(Revocations { all: u32::from_be_bytes(*all), agents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_never_comes_back() {
        let (phone, tablet) = (AgentId(1), AgentId(2));
        let mut revocations = Revocations::default();
        let first = revocations.generation(phone);
        revocations.revoke(phone);
        let second = revocations.generation(phone);
        assert_ne!(first, second);
        assert_eq!(revocations.generation(tablet), first);
        revocations.revoke_all();
        assert!(![first, second].contains(&revocations.generation(phone)));
        assert_ne!(revocations.generation(tablet), first);
    }

    #[test]
    fn too_many_clients_are_one() {
        let mut revocations = Revocations::default();
        (0..Revocations::AGENTS_MAX as u64).for_each(|n| revocations.revoke(AgentId(n)));
        let before = revocations.generation(AgentId(7));
        revocations.revoke(AgentId(u64::MAX));
        assert_ne!(revocations.generation(AgentId(7)), before);
        assert_eq!(revocations.to_bytes().len(), 4);
    }

    #[test]
    fn is_read_back() {
        let mut revocations = Revocations::default();
        assert!(revocations.is_empty());
        revocations.revoke_all();
        revocations.revoke(AgentId(u64::MAX));
        assert_eq!(Revocations::from_bytes(&revocations.to_bytes()), Some(revocations));
        assert_eq!(Revocations::from_bytes(b"abc"), None);
        assert_eq!(Revocations::from_bytes(b"abcdefg"), None);
    }
}
