//! Sources and drivers that this binary was built without.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// Settings that nothing in this binary can read.
#[derive(Debug)]
pub(super) struct Unbuilt;

impl<'de> Deserialize<'de> for Unbuilt {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Unbuilt, D::Error> {
        IgnoredAny::deserialize(input).map(|_| Unbuilt)
    }
}

impl Unbuilt {
    /// Why there is no such source or driver.
    pub(super) fn why(&self, kind: &str, feature: &str) -> String {
        format!("{kind}: this binary was built without it: build it with `--features {feature}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
    enum Kinds {
        Elsewhere(Unbuilt),
    }

    #[test]
    fn the_feature_is_named_whatever_else_is_set() {
        let Kinds::Elsewhere(unbuilt) =
            toml::from_str("kind = \"elsewhere\"\ntable = \"a\"\nmore = { b = [1] }").expect("it is read");
        assert_eq!(
            unbuilt.why("driver.kind: elsewhere", "aws"),
            "driver.kind: elsewhere: this binary was built without it: build it with `--features aws`"
        );
    }

    #[cfg(not(feature = "kubernetes"))]
    #[test]
    fn kubernetes_is_a_feature() {
        let settings = toml::from_str("kind = \"kubernetes\"\nname = \"edge\"").expect("it is read");
        let why = super::super::driver::open(settings, 1, None).map(drop).expect_err("it is not built");
        assert!(why.ends_with("`--features kubernetes`"), "{why}");
    }
}
