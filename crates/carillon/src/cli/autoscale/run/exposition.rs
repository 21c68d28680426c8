//! Prometheus' text format, as far as sums of samples need it.

/// The sum of all samples of a metric, whatever their labels; none if there are none.
pub(super) fn sum(page: &str, name: &str) -> Option<f64> {
    page.lines().filter_map(|line| value(line, name)).reduce(|sum, value| sum + value)
}

fn value(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let rest = match rest.strip_prefix('{') {
        // A value holds no brace, so the last one ends the labels.
        Some(labelled) => labelled.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_added_up_whatever_their_labels() {
        let page = "# TYPE a counter\na_total{reason=\"x } y\"} 2\na_total{reason=\"z\"} 3 1700000000\na_totals 9\nb 4.5\n";
        assert_eq!(sum(page, "a_total"), Some(5.0));
        assert_eq!(sum(page, "b"), Some(4.5));
        assert_eq!(sum(page, "a"), None);
    }
}
