//! The two demands of the experiment, to the second.

/// A demand of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// 15 minutes at 25 per second, up to 300 in 45 minutes, down to 25 in 15 minutes, 15 minutes at 25.
    Bell,
    /// 15 minutes at 25 per second, up to 300 in 5 minutes, then 3 per second less in each minute; two hours.
    TopHeavy,
}

impl Experiment {
    /// Both.
    pub const ALL: [Experiment; 2] = [Experiment::Bell, Experiment::TopHeavy];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Bell => "bell",
            Experiment::TopHeavy => "top-heavy",
        }
    }

    /// How much is asked for in each second.
    pub fn seconds(self) -> Vec<f64> {
        (0..self.minutes() * 60).map(|second| self.rate(f64::from(second) + 0.5)).collect()
    }

    fn minutes(self) -> u32 {
        match self {
            Experiment::Bell => 90,
            Experiment::TopHeavy => 120,
        }
    }

    /// What is asked for per second at a time in seconds.
    fn rate(self, time: f64) -> f64 {
        let minute = time / 60.0;
        match self {
            _ if minute <= 15.0 => LOW,
            Experiment::Bell if minute <= 60.0 => LOW + (minute - 15.0) * (HIGH - LOW) / 45.0,
            Experiment::Bell if minute <= 75.0 => HIGH - (minute - 60.0) * (HIGH - LOW) / 15.0,
            Experiment::Bell => LOW,
            Experiment::TopHeavy if minute <= 20.0 => LOW + (minute - 15.0) * (HIGH - LOW) / 5.0,
            Experiment::TopHeavy => (HIGH - (minute - 20.0) * 3.0).max(0.0),
        }
    }
}

/// The lowest and the highest rate.
const LOW: f64 = 25.0;
const HIGH: f64 = 300.0;
