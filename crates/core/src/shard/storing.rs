//! Accounts for which messages are being stored. A newer one must wait behind them: if it were given to a session that has become available
//! meanwhile, it would overtake them.

use crate::model::Map;

/// For how many messages of an account the store's answer is awaited.
#[derive(Debug, Default)]
pub struct Storing(Map<Box<str>, u32>);

impl Storing {
    /// The store is asked to keep a message for an account.
    pub fn begin(&mut self, account: &str) {
        match self.0.get_mut(account) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(account.into(), 1)),
        }
    }

    /// It answered.
    pub fn end(&mut self, account: &str) {
        if let Some(count) = self.0.get_mut(account) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(account);
            }
            // What a burst made it grow to is given back.
            if self.0.is_empty() && self.0.capacity() > 64 {
                self.0 = Map::default();
            }
        }
    }

    /// Whether an answer is awaited.
    pub fn is_under_way(&self, account: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_the_last_answer() {
        let mut storing = Storing::default();
        storing.begin("a@d");
        storing.begin("a@d");
        storing.end("a@d");
        assert!(storing.is_under_way("a@d") && !storing.is_under_way("b@d"));
        storing.end("a@d");
        assert!(!storing.is_under_way("a@d") && storing.0.is_empty());
    }
}
