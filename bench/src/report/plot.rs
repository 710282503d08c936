//! Plots, as SVG written by hand: dots on a logarithmic axis, and lines over sizes.
use crate::row::{Peer, Row, number, separated};
use std::collections::BTreeSet;
use std::fmt::Write;

const LABELS: f64 = 430.0;
const PLOT: f64 = 520.0;
const LINE: f64 = 20.0;
const TOP: f64 = 64.0;

/// A colour that a peer keeps in every plot.
fn colour(name: &str) -> &'static str {
    match name {
        "ours" => "#1557b0",
        "floor" => "#6b7280",
        "client-go-model" => "#e07b00",
        "client-go" => "#00a3c4",
        "kube-runtime" => "#c2185b",
        _ => "#5b8c3a",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

struct Svg(String);

impl Svg {
    fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self(String::new());
        svg.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">"
        ));
        svg.put(format_args!("<title>{}</title>", escape(title)));
        svg.put(format_args!(
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
        ));
        svg
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{text}").expect("writing to a string never fails");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, fill: &str, text: &str) {
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{}</text>",
            escape(text)
        ));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.put(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        ));
    }

    fn dot(&mut self, x: f64, y: f64, fill: &str, hover: &str) {
        self.put(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{fill}\"><title>{}</title></circle>",
            escape(hover)
        ));
    }

    fn legend(&mut self, mut x: f64, y: f64, names: &BTreeSet<&str>) {
        for name in names {
            self.dot(x, y - 4.0, colour(name), name);
            self.text(x + 9.0, y, "start", "#111", name);
            x += 28.0 + 7.0 * name.len() as f64;
        }
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// A logarithmic axis over whole powers of ten.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, start: f64, length: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value.log10().floor());
            high = high.max(value.log10().ceil());
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low < 1.0 {
            high = low + 1.0;
        }
        Self {
            low,
            high,
            start,
            length,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        self.start + part.clamp(0.0, 1.0) * self.length
    }

    fn decades(&self) -> impl Iterator<Item = f64> + use<> {
        let (low, high) = (self.low as i32, self.high as i32);
        (low..=high).map(|exponent| 10_f64.powi(exponent))
    }
}

/// One line for each row: how many times better ours is than each peer.
pub(super) fn ratios(id: &str, rows: &[Row]) -> String {
    let rows: Vec<_> = rows.iter().filter(|row| !row.ratio.is_empty()).collect();
    let height = TOP + LINE * rows.len() as f64 + 30.0;
    let title = format!("{id}: how many times better informant is (right of 1: better)");
    let mut svg = Svg::new(LABELS + PLOT + 40.0, height, &title);
    svg.text(12.0, 20.0, "start", "#111", &title);
    let peers = rows
        .iter()
        .flat_map(|row| row.ratio.keys())
        .map(String::as_str);
    svg.legend(18.0, 42.0, &peers.collect());
    let values = rows.iter().flat_map(|row| row.ratio.values().copied());
    let axis = Axis::over(values.chain([1.0]), LABELS, PLOT);
    let bottom = TOP + LINE * rows.len() as f64;
    for decade in axis.decades() {
        let x = axis.at(decade);
        let style = if (decade - 1.0).abs() < 1e-9 {
            "stroke=\"#111\" stroke-width=\"1.5\""
        } else {
            "stroke=\"#ddd\""
        };
        svg.line((x, TOP - 6.0), (x, bottom), style);
        svg.text(
            x,
            bottom + 16.0,
            "middle",
            "#444",
            &format!("{}x", number(decade)),
        );
    }
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + LINE * (at as f64 + 0.5);
        let label = format!("{} (n = {})", row.row, separated(row.n as i64));
        let fill = match row.met {
            Some(true) => "#1a7f37",
            Some(false) => "#b3261e",
            None => "#111",
        };
        svg.text(LABELS - 12.0, y + 4.0, "end", fill, &label);
        svg.line((LABELS, y), (LABELS + PLOT, y), "stroke=\"#f0f0f0\"");
        for (peer, ratio) in &row.ratio {
            let hover = format!("{peer}: {}x", number(*ratio));
            svg.dot(axis.at(*ratio), y, colour(peer), &hover);
        }
    }
    svg.end()
}

const PANEL_WIDTH: f64 = 320.0;
const PANEL_HEIGHT: f64 = 230.0;
const PANELS_A_LINE: usize = 3;

/// One panel for each row that was measured at three sizes or more; `None` when there is none.
pub(super) fn sizes(rows: &[Row]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let sizes: BTreeSet<_> = rows
            .iter()
            .filter(|r| r.row == row.row)
            .map(|r| r.n)
            .collect();
        if sizes.len() >= 3 && !names.contains(&row.row.as_str()) {
            names.push(&row.row);
        }
    }
    if names.is_empty() {
        return None;
    }
    let columns = names.len().min(PANELS_A_LINE) as f64;
    let lines = names.len().div_ceil(PANELS_A_LINE) as f64;
    let width = (columns * PANEL_WIDTH + 20.0).max(520.0);
    let mut svg = Svg::new(width, lines * PANEL_HEIGHT + 40.0, "by number of objects");
    let mut drawn = BTreeSet::from(["ours"]);
    for (at, name) in names.iter().enumerate() {
        let left = (at % PANELS_A_LINE) as f64 * PANEL_WIDTH + 60.0;
        let top = (at / PANELS_A_LINE) as f64 * PANEL_HEIGHT + 60.0;
        let rows: Vec<_> = rows.iter().filter(|row| row.row == **name).collect();
        panel(&mut svg, (left, top), name, &rows, &mut drawn);
    }
    svg.legend(18.0, 24.0, &drawn);
    Some(svg.end())
}

fn panel<'r>(
    svg: &mut Svg,
    (left, top): (f64, f64),
    name: &str,
    rows: &[&'r Row],
    drawn: &mut BTreeSet<&'r str>,
) {
    let (width, height) = (PANEL_WIDTH - 80.0, PANEL_HEIGHT - 80.0);
    let mut series: Vec<(&str, Vec<(f64, f64)>)> = vec![("ours", Vec::new())];
    for row in rows {
        series[0].1.push((row.n as f64, row.ours.spread.median));
        for (peer, figure) in &row.peers {
            let Peer::Measured(figure) = figure else {
                continue;
            };
            let point = (row.n as f64, figure.spread.median);
            match series.iter_mut().find(|(known, _)| known == peer) {
                Some((_, points)) => points.push(point),
                None => series.push((peer, vec![point])),
            }
        }
    }
    let points = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let across = Axis::over(points().map(|point| point.0), left, width);
    let upwards = Axis::over(points().map(|point| point.1), 0.0, height);
    let y_of = |value: f64| top + height - upwards.at(value);
    let unit = rows.first().map_or("", |row| row.ours.unit.as_str());
    svg.text(left, top - 8.0, "start", "#111", &format!("{name}, {unit}"));
    for decade in across.decades() {
        let x = across.at(decade);
        svg.line((x, top), (x, top + height), "stroke=\"#eee\"");
        svg.text(
            x,
            top + height + 15.0,
            "middle",
            "#444",
            &separated(decade as i64),
        );
    }
    for decade in upwards.decades() {
        let y = y_of(decade);
        svg.line((left, y), (left + width, y), "stroke=\"#eee\"");
        svg.text(left - 6.0, y + 4.0, "end", "#444", &number(decade));
    }
    for (peer, points) in &series {
        drawn.insert(peer);
        for pair in points.windows(2) {
            let style = format!("stroke=\"{}\" stroke-width=\"2\"", colour(peer));
            let place = |(n, value): (f64, f64)| (across.at(n), y_of(value));
            svg.line(place(pair[0]), place(pair[1]), &style);
        }
        for (n, value) in points {
            let hover = format!(
                "{peer}, n = {}: {} {unit}",
                separated(*n as i64),
                number(*value)
            );
            svg.dot(across.at(*n), y_of(*value), colour(peer), &hover);
        }
    }
}
