//! Times and sizes as people write them.

/// One second in milliseconds.
pub(super) const SECOND: u64 = 1000;
/// One minute in milliseconds.
pub(super) const MINUTE: u64 = 60 * SECOND;
/// One hour in milliseconds.
pub(super) const HOUR: u64 = 60 * MINUTE;
/// One day in milliseconds.
pub(super) const DAY: u64 = 24 * HOUR;
/// 1024 bytes.
pub(super) const KIB: u64 = 1024;
/// 1024 KiB.
pub(super) const MIB: u64 = 1024 * KIB;
/// 1024 MiB.
pub(super) const GIB: u64 = 1024 * MIB;

/// Longest first, because printing takes the first that divides.
const TIMES: [(&str, u64); 5] = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];
const SIZES: [(&str, u64); 4] = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];

/// The milliseconds of `250ms`, `30s`, `5m`, `12h` or `7d`.
pub fn milliseconds(text: &str) -> Option<u64> {
    with_unit(text, &TIMES)
}

/// The bytes of `100B`, `64KiB`, `1MiB` or `2GiB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    with_unit(text, &SIZES)
}

/// Milliseconds for people, in the largest unit that says them exactly.
pub(super) fn show_ms(ms: u64) -> String {
    in_unit(ms, &TIMES)
}

/// Bytes for people, in the largest unit that says them exactly.
pub(super) fn show_bytes(bytes: u64) -> String {
    in_unit(bytes, &SIZES)
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, name) = text.split_at(digits);
    let (_, size) = units.iter().find(|(unit, _)| *unit == name.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*size)
}

fn in_unit(value: u64, units: &[(&str, u64)]) -> String {
    let smallest = units[units.len() - 1];
    let (name, size) =
        units.iter().find(|(_, size)| value > 0 && value.is_multiple_of(*size)).unwrap_or(&smallest);
    format!("{}{name}", value / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for (ms, text) in [(250, "250ms"), (30_000, "30s"), (300_000, "5m"), (7 * DAY, "7d"), (0, "0ms")] {
            assert_eq!((milliseconds(text), show_ms(ms).as_str()), (Some(ms), text));
        }
        for (size, text) in [(100, "100B"), (65_536, "64KiB"), (3 * MIB, "3MiB"), (2 * GIB, "2GiB")] {
            assert_eq!((bytes(text), show_bytes(size).as_str()), (Some(size), text));
        }
        assert_eq!(milliseconds("30 s"), Some(30_000));
    }

    #[test]
    fn refuses_what_it_cannot_mean() {
        for text in ["", "s", "30", "1.5s", "-1s", "30 sec", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        assert_eq!(bytes("64KB"), None);
    }
}
