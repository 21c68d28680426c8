//! The mathematics of a [`Shape`]: at most two pieces, each a straight line or a half cosine, and then a steady rate.
//! The integral is exact; its inverse is exact for lines, and found by bisection for cosines.

use std::f64::consts::PI;
use std::time::Duration;

use super::shape::{NamedShape, Shape};

/// Steps of the bisection: they narrow an hour to a fraction of a nanosecond.
const HALVINGS: u32 = 64;

/// A shape as a sequence of pieces.
#[derive(Clone, Copy, Debug)]
struct Curve {
    pieces: [Piece; 2],
    /// The rate after the pieces.
    tail: f64,
}

/// A piece of a shape, in seconds and events per second.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    to: f64,
    lasts: f64,
    bend: Bend,
}

#[derive(Clone, Copy, Debug)]
enum Bend {
    Straight,
    Cosine,
}

impl Shape {
    /// Events per second at a time after the start; for [`NamedShape::PerPlayer`] those of one player.
    pub fn rate_at(&self, time: Duration) -> f64 {
        let curve = self.curve();
        let mut left = time.as_secs_f64();
        for piece in curve.pieces {
            if left < piece.lasts {
                return piece.rate_at(left);
            }
            left -= piece.lasts;
        }
        curve.tail
    }

    /// How many events are due up to a time after the start: the integral of the rate.
    pub fn arrivals(&self, time: Duration) -> f64 {
        let curve = self.curve();
        let mut left = time.as_secs_f64();
        let mut arrivals = 0.0;
        for piece in curve.pieces {
            arrivals += piece.arrivals(left.min(piece.lasts));
            left = (left - piece.lasts).max(0.0);
        }
        arrivals + curve.tail * left
    }

    /// The time after the start at which this many events are due; `None` if there are never so many.
    pub fn due(&self, events: f64) -> Option<Duration> {
        let curve = self.curve();
        let (mut left, mut time) = (events, 0.0);
        for piece in curve.pieces {
            let all = piece.arrivals(piece.lasts);
            if left < all {
                return Duration::try_from_secs_f64(time + piece.due(left)).ok();
            }
            left -= all;
            time += piece.lasts;
        }
        if curve.tail <= 0.0 {
            return None;
        }
        Duration::try_from_secs_f64(time + left / curve.tail).ok()
    }

    /// When the shape ends; `None` if it does not.
    pub fn span(&self) -> Option<Duration> {
        let curve = self.curve();
        let lasts: f64 = curve.pieces.iter().map(|piece| piece.lasts).sum();
        (curve.tail <= 0.0).then(|| Duration::try_from_secs_f64(lasts).unwrap_or(Duration::MAX))
    }

    fn curve(&self) -> Curve {
        let seconds = |span: super::Span| span.0.as_secs_f64();
        match *self {
            Self::Steady(rate)
            | Self::Named(NamedShape::Steady { rate } | NamedShape::PerPlayer { rate }) => {
                Curve { pieces: [Piece::NONE; 2], tail: rate }
            }
            Self::Named(NamedShape::Ramp { from, to, over }) => {
                Curve { pieces: [Piece::straight(from, to, seconds(over)), Piece::NONE], tail: to }
            }
            Self::Named(NamedShape::Spike { base, peak, at, lasts }) => Curve {
                pieces: [
                    Piece::straight(base, base, seconds(at)),
                    Piece::straight(peak, peak, seconds(lasts)),
                ],
                tail: base,
            },
            Self::Named(NamedShape::Bell { base, peak, rise, fall }) => {
                let rise = Piece { from: base, to: peak, lasts: seconds(rise), bend: Bend::Cosine };
                let fall = Piece { from: peak, to: base, lasts: seconds(fall), bend: Bend::Cosine };
                Curve { pieces: [rise, fall], tail: 0.0 }
            }
            Self::Named(NamedShape::TopHeavy { base, peak, rise, fall_per_minute }) => {
                let fall = (peak - base) / fall_per_minute * 60.0;
                let pieces = [Piece::straight(base, peak, seconds(rise)), Piece::straight(peak, base, fall)];
                Curve { pieces, tail: 0.0 }
            }
        }
    }
}

impl Piece {
    const NONE: Self = Self { from: 0.0, to: 0.0, lasts: 0.0, bend: Bend::Straight };

    fn straight(from: f64, to: f64, lasts: f64) -> Self {
        Self { from, to, lasts, bend: Bend::Straight }
    }

    fn rate_at(&self, time: f64) -> f64 {
        let part = time / self.lasts;
        let grown = match self.bend {
            Bend::Straight => part,
            Bend::Cosine => (1.0 - (PI * part).cos()) / 2.0,
        };
        self.from + (self.to - self.from) * grown
    }

    fn arrivals(&self, time: f64) -> f64 {
        if self.lasts <= 0.0 {
            return 0.0;
        }
        let part = time / self.lasts;
        let grown = match self.bend {
            Bend::Straight => part * part / 2.0,
            Bend::Cosine => part / 2.0 - (PI * part).sin() / (2.0 * PI),
        };
        self.from * time + (self.to - self.from) * self.lasts * grown
    }

    /// The time at which this many events are due; the piece has more.
    fn due(&self, events: f64) -> f64 {
        match self.bend {
            Bend::Straight => {
                // from·t + slope·t²/2 = events, solved in the form that is also exact for a slope of zero.
                let slope = (self.to - self.from) / self.lasts;
                let root = (self.from * self.from + 2.0 * slope * events).max(0.0).sqrt();
                if self.from + root > 0.0 { 2.0 * events / (self.from + root) } else { 0.0 }
            }
            Bend::Cosine => {
                let (mut low, mut high) = (0.0, self.lasts);
                for _ in 0..HALVINGS {
                    let middle = f64::midpoint(low, high);
                    if self.arrivals(middle) < events { low = middle } else { high = middle }
                }
                high
            }
        }
    }
}

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
