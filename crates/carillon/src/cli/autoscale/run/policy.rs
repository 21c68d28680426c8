//! `[policy]`: how is decided.

use super::span::span;
use carillon_core::model::UnixMs;
use carillon_load::plan::Span;
use carillon_scale::Settings;
use carillon_scale::settings::{Down, Freeze, Scheduled, Window};
use serde::Deserialize;
use std::time::Duration;

/// `[policy]`. What is not given has the default of the crate `scale`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicySettings {
    #[serde(default)]
    name: Option<String>,
    /// In percent.
    target: f64,
    min: u32,
    max: u32,
    step: Option<u32>,
    up_max: Option<u32>,
    down_max: Option<u32>,
    interval: Option<Span>,
    effect: Option<Span>,
    stale_after: Option<Span>,
    season_days: Option<u32>,
    reserve_zones: Option<u32>,
    #[serde(default)]
    down: DownSettings,
    #[serde(default)]
    schedule: Vec<ScheduleSettings>,
    #[serde(default)]
    freeze: Vec<FreezeSettings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DownSettings {
    after: Option<Span>,
    /// In percent of what is granted.
    below: Option<f64>,
    /// Units are never taken away.
    #[serde(default)]
    never: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleSettings {
    from: String,
    until: String,
    every: Option<String>,
    units: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FreezeSettings {
    from: String,
    until: String,
    every: Option<String>,
    #[serde(default)]
    only_down: bool,
}

impl PolicySettings {
    /// What the scaler is given; it checks the rest.
    pub(super) fn settings(self) -> Result<Settings, String> {
        let given = Settings::default();
        let down = given.down.unwrap_or_default();
        let down = Down {
            after: span(self.down.after, down.after),
            below: self.down.below.map_or(down.below, |percent| percent / 100.0),
        };
        let policy = self.name.map_or(Ok(given.policy), |name| name.parse());
        let interval = span(self.interval, given.interval);
        Ok(Settings {
            policy: policy.map_err(|why| format!("policy.name: {why}"))?,
            target: self.target / 100.0,
            min: self.min,
            max: self.max,
            step: self.step.unwrap_or(given.step),
            up_max: self.up_max.unwrap_or(given.up_max),
            down_max: self.down_max.unwrap_or(given.down_max),
            interval,
            effect: span(self.effect, given.effect),
            down: (!self.down.never).then_some(down),
            stale_after: span(self.stale_after, interval * 5),
            schedule: self.schedule.into_iter().map(ScheduleSettings::scheduled).collect::<Result<_, _>>()?,
            season_days: self.season_days.unwrap_or(given.season_days),
            reserve_zones: self.reserve_zones.unwrap_or(given.reserve_zones),
            freeze: self.freeze.into_iter().map(FreezeSettings::freeze).collect::<Result<_, _>>()?,
        })
    }
}

impl ScheduleSettings {
    fn scheduled(self) -> Result<Scheduled, String> {
        let window = window("policy.schedule", &self.from, &self.until, self.every.as_deref())?;
        Ok(Scheduled { window, units: self.units })
    }
}

impl FreezeSettings {
    fn freeze(self) -> Result<Freeze, String> {
        let window = window("policy.freeze", &self.from, &self.until, self.every.as_deref())?;
        Ok(Freeze { window, only_down: self.only_down })
    }
}

fn window(of: &str, from: &str, until: &str, every: Option<&str>) -> Result<Window, String> {
    let moment = |key: &str, text: &str| {
        let at = UnixMs::from_rfc3339(text).map(|at| Duration::from_millis(at.0));
        at.ok_or_else(|| format!("{of}.{key}: {text:?} is no time such as 2026-12-24T18:00:00Z"))
    };
    let repeated = |text: &str| {
        let every = crate::config::milliseconds(text).map(Duration::from_millis);
        every
            .filter(|every| !every.is_zero())
            .ok_or_else(|| format!("{of}.every: {text:?} is no time such as 1d"))
    };
    Ok(Window {
        from: moment("from", from)?,
        until: moment("until", until)?,
        every: every.map(repeated).transpose()?,
    })
}
