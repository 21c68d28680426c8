//! Targets as they are given: `70`, `50,70`, `30..80`, `30..80/5`.

use std::str::FromStr;

/// Targets in percent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Targets(Vec<u32>);

impl Targets {
    /// Those of the experiment.
    pub(super) fn of_the_experiment() -> Targets {
        Targets((30..=80).step_by(10).collect())
    }

    /// Each as a share of what a unit carries.
    pub(super) fn shares(&self) -> Vec<f64> {
        self.0.iter().map(|percent| f64::from(*percent) / 100.0).collect()
    }
}

impl FromStr for Targets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<Vec<u32>>, String> = text.split(',').map(|part| one(part.trim())).collect();
        let targets: Vec<u32> = parts?.into_iter().flatten().collect();
        match targets.iter().find(|target| !(1..=100).contains(*target)) {
            Some(target) => Err(format!("{target} is out of range; expected 1 to 100 percent")),
            None => Ok(Self(targets)),
        }
    }
}

/// A number or a range, both ends of which are in it.
fn one(text: &str) -> Result<Vec<u32>, String> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("{text:?} is no whole number; expected 70, 50,70, 30..80 or 30..80/5"))
    };
    let Some((from, rest)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (to, step) = rest.split_once('/').unwrap_or((rest, "10"));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if from > to || step == 0 || to > 100 {
        return Err(format!("{text:?} is no range; expected one such as 30..80"));
    }
    Ok((from..=to).step_by(step as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Targets>().map(|targets| targets.0);
        assert_eq!(read("30..80"), Ok(vec![30, 40, 50, 60, 70, 80]));
        assert_eq!(read("60..70/5, 80"), Ok(vec![60, 65, 70, 80]));
        assert_eq!(read("0"), Err("0 is out of range; expected 1 to 100 percent".to_owned()));
        assert!(read("80..30").is_err() && read("1..4000000000").is_err() && read("30..80/0").is_err());
        assert!(read("x").is_err_and(|why| why.starts_with("\"x\" is no whole number")));
    }
}
