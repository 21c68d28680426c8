//! Just enough SVG: text that is escaped, lines and boxes.

use std::fmt::{Display, Write};

/// A picture as it grows. Colours come by class from a style sheet, so that it follows light and dark.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// Where a text is relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture; the label is what it is called by who cannot see it.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: label.to_owned(), body: String::new() }
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A box.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64, round: f64) {
        self.put(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{round}"/>"#
        ));
    }

    /// A line through points, and a dot where a point stands alone. `gap` is the distance in x at which it breaks.
    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)], gap: f64) {
        let mut path = String::new();
        let runs = points.chunk_by(|a, b| b.0 - a.0 <= gap);
        for run in runs {
            if let [(x, y)] = run {
                self.put(format_args!(r#"<circle class="dot {class}" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#));
                continue;
            }
            for (at, (x, y)) in run.iter().enumerate() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
            }
        }
        if !path.is_empty() {
            self.put(format_args!(r#"<path class="series {class}" d="{path}"/>"#));
        }
    }

    /// A text.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = Escaped(text);
        self.put(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// An area that shows a text while the pointer is over it.
    pub(super) fn hover(&mut self, (x, y): (f64, f64), width: f64, height: f64, text: &str) {
        let text = Escaped(text);
        self.put(format_args!(
            r#"<rect class="hover" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{text}</title></rect>"#
        ));
    }

    /// The whole picture; `style` is put into it if it is to stand alone.
    pub(super) fn finish(self, style: Option<&str>) -> String {
        let Self { width, height, label, body } = self;
        let style = style.map(|style| format!("<style>{style}</style>")).unwrap_or_default();
        let label = Escaped(&label);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">{style}{body}</svg>"#
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }
}

/// About how wide a text of the pictures' small size is.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.3
}

/// Text within XML or HTML.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Of the control characters XML has only these.
                '\t' | '\n' | '\r' => f.write_char(character)?,
                character if character.is_control() => f.write_char('\u{fffd}')?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_lines_break_at_gaps() {
        assert_eq!(Escaped("<a b=\"1\">&\u{1}").to_string(), "&lt;a b=&quot;1&quot;&gt;&amp;\u{fffd}");
        let mut svg = Svg::new(10.0, 10.0, "l");
        svg.polyline("s1", &[(0.0, 1.0), (1.0, 2.0), (5.0, 3.0)], 2.0);
        let text = svg.finish(None);
        assert!(text.contains(r#"d="M0.0 1.0L1.0 2.0""#), "{text}");
        assert!(text.contains(r#"<circle class="dot s1" cx="5.0" cy="3.0""#), "{text}");
    }
}
