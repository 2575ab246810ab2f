//! Pictures of obstacles as polygons: every obstacle pixel lies in one of them.
//!
//! The outlines of obstacle pixels that share sides are traced exactly. They are staircases, which are then straightened
//! to the outside alone: a corner at which the outline turns away from the obstacle is left out, which adds a triangle
//! to the polygon and takes nothing away. That is done as long as no left-out corner is farther than a tolerance from
//! the side that replaces it, and no other corner of the same obstacle lies in the triangle, so that outlines stay
//! simple.

use std::collections::HashMap;
use std::io::Cursor;

use super::{Polygon, PolygonError, Ring};
use crate::interrupt::checkpoint;
use crate::number::Rational;

/// A problem with a picture of obstacles.
#[derive(Debug, thiserror::Error)]
pub enum MaskError {
    /// Not a PNG file, or a damaged one.
    #[error("not a PNG file, or a damaged one: {0}")]
    Png(#[from] png::DecodingError),
    /// More pixels than a picture of obstacles may have.
    #[error("the picture has {width} x {height} pixels; reduce it to at most {MAX_PIXELS} in all")]
    TooLarge {
        /// The number of pixels of a row.
        width: u32,
        /// The number of rows.
        height: u32,
    },
    /// The number of pixels does not fit the width.
    #[error("{pixels} pixels do not make rows of {width}")]
    Shape {
        /// How many pixels there are.
        pixels: usize,
        /// How many pixels a row has.
        width: usize,
    },
    /// The tolerance is negative or NaN.
    #[error("the tolerance is a distance in pixels, 0 or more, not {0}")]
    Tolerance(f64),
    /// An outline that is not a simple polygon.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
}

/// The largest number of pixels of a picture.
const MAX_PIXELS: u64 = 1 << 28;

/// A picture of obstacles: which pixels are obstacles, row by row from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The number of pixels of a row.
    pub width: usize,
    /// For every pixel whether it is an obstacle.
    pub obstacles: Vec<bool>,
}

impl Mask {
    /// Reads a PNG file. Pixels darker than a threshold from 0 (black) to 1 (white) are obstacles, as in the maps of
    /// robots; transparent ones are not.
    pub fn from_png(bytes: &[u8], threshold: f64) -> Result<Mask, MaskError> {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let (width, height) = reader.info().size();
        let too_large = MaskError::TooLarge { width, height };
        // What the header claims is checked before memory is taken for it.
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(too_large);
        }
        let mut pixels = vec![0; reader.output_buffer_size().ok_or(too_large)?];
        let frame = reader.next_frame(&mut pixels)?;
        let samples = frame.color_type.samples();
        let dark = |pixel: &[u8]| {
            let part = |k: usize| f64::from(pixel[k]) / 255.0;
            let (light, alpha) = match samples {
                1 => (part(0), 1.0),
                2 => (part(0), part(1)),
                3 => (0.299 * part(0) + 0.587 * part(1) + 0.114 * part(2), 1.0),
                _ => (0.299 * part(0) + 0.587 * part(1) + 0.114 * part(2), part(3)),
            };
            light < threshold && alpha > 0.5
        };
        let rows = pixels.chunks_exact(frame.line_size).take(frame.height as usize);
        let obstacles =
            rows.flat_map(|row| row.chunks_exact(samples).take(frame.width as usize).map(dark).collect::<Vec<_>>());
        Ok(Mask { width: frame.width as usize, obstacles: obstacles.collect() })
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.obstacles.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether a pixel is an obstacle; nothing outside of the picture is.
    fn is_obstacle(&self, x: i64, y: i64) -> bool {
        let (width, height) = (self.width as i64, self.height() as i64);
        // The picture has its first row at the top, the plane its origin at the bottom.
        (0..width).contains(&x) && (0..height).contains(&y) && self.obstacles[((height - 1 - y) * width + x) as usize]
    }
}

/// A corner of pixels.
type Corner = [i64; 2];

/// The polygons of the obstacles of a picture. Pixels are squares with sides of 1, x runs to the right from 0 and y
/// upwards from 0 at the lower left corner of the picture. Every obstacle pixel lies in a polygon, and no point of a
/// polygon is farther than about the tolerance from an obstacle pixel.
///
/// ```
/// use pal::formula::{Mask, mask_polygons};
/// let mask = Mask { width: 3, obstacles: vec![true, false, false, true, true, false, true, true, true] };
/// assert_eq!(mask_polygons(&mask, 0.0).unwrap()[0].area().to_string(), "6");
/// // Two steps of a staircase, straightened to the outside.
/// assert_eq!(mask_polygons(&mask, 1.0).unwrap()[0].points().len(), 5);
/// ```
pub fn mask_polygons(mask: &Mask, tolerance: f64) -> Result<Vec<Polygon>, MaskError> {
    if mask.width == 0 || !mask.obstacles.len().is_multiple_of(mask.width) {
        return Err(MaskError::Shape { pixels: mask.obstacles.len(), width: mask.width });
    }
    if tolerance.is_nan() || tolerance < 0.0 {
        return Err(MaskError::Tolerance(tolerance));
    }
    let mut polygons = Vec::new();
    for mut rings in outlines(mask) {
        checkpoint();
        straighten(&mut rings, tolerance);
        let exact = |ring: &Outline| {
            let corner = |side: &OutlineSide| side.start.map(Rational::from);
            Ring::new(ring.iter().map(corner).collect())
        };
        let mut rings = rings.iter().map(exact).collect::<Result<Vec<_>, _>>()?;
        let outer = rings.remove(0);
        polygons.push(Polygon::new(outer, rings)?);
    }
    Ok(polygons)
}

/// A ring of sides with the obstacle on the left.
type Outline = Vec<OutlineSide>;

/// A side of an outline: where it starts, and the corners that it replaces.
#[derive(Clone)]
struct OutlineSide {
    start: Corner,
    replaces: Vec<Corner>,
}

/// The outlines of all obstacles: of each the outer ring first, counterclockwise, then its holes, clockwise.
fn outlines(mask: &Mask) -> Vec<Vec<Outline>> {
    let (width, height) = (mask.width as i64, mask.height() as i64);
    // Obstacle pixels that share sides have one label.
    let mut labels: HashMap<Corner, usize> = HashMap::new();
    let mut count = 0;
    // From every corner the directions in which sides leave it; at most two.
    let mut sides: HashMap<Corner, Vec<Corner>> = HashMap::new();
    let mut starts: Vec<(Corner, Corner)> = Vec::new();
    for y in 0..height {
        for x in 0..width {
            if !mask.is_obstacle(x, y) {
                continue;
            }
            if !labels.contains_key(&[x, y]) {
                let mut open = vec![[x, y]];
                labels.insert([x, y], count);
                while let Some([x, y]) = open.pop() {
                    for next in [[x + 1, y], [x - 1, y], [x, y + 1], [x, y - 1]] {
                        if mask.is_obstacle(next[0], next[1]) && !labels.contains_key(&next) {
                            labels.insert(next, count);
                            open.push(next);
                        }
                    }
                }
                count += 1;
            }
            let around = [
                ([x, y - 1], [x, y], [1, 0]),
                ([x + 1, y], [x + 1, y], [0, 1]),
                ([x, y + 1], [x + 1, y + 1], [-1, 0]),
                ([x - 1, y], [x, y + 1], [0, -1]),
            ];
            for (neighbour, start, direction) in around {
                if !mask.is_obstacle(neighbour[0], neighbour[1]) {
                    sides.entry(start).or_default().push(direction);
                    starts.push((start, direction));
                }
            }
        }
    }
    let mut found: Vec<(Option<Outline>, Vec<Outline>)> = vec![(None, Vec::new()); count];
    for (start, direction) in starts {
        if !sides.get(&start).is_some_and(|out| out.contains(&direction)) {
            continue;
        }
        for ring in trace(&mut sides, start, direction) {
            let (from, to) = (ring[0], ring[1]);
            let step = [(to[0] - from[0]).signum(), (to[1] - from[1]).signum()];
            // The pixel to the left of the first side.
            let pixel = match step {
                [1, 0] => from,
                [0, 1] => [from[0] - 1, from[1]],
                [-1, 0] => [from[0] - 1, from[1] - 1],
                _ => [from[0], from[1] - 1],
            };
            let outline: Outline =
                ring.iter().map(|start| OutlineSide { start: *start, replaces: Vec::new() }).collect();
            if let Some((outer, holes)) = labels.get(&pixel).and_then(|label| found.get_mut(*label)) {
                if twice_area(&ring) > 0 { *outer = Some(outline) } else { holes.push(outline) }
            }
        }
    }
    let whole = |(outer, holes): (Option<Outline>, Vec<Outline>)| outer.map(|outer| [vec![outer], holes].concat());
    found.into_iter().filter_map(whole).collect()
}

fn twice_area(ring: &[Corner]) -> i64 {
    (0..ring.len()).map(|k| cross([0, 0], ring[k], ring[(k + 1) % ring.len()])).sum()
}

/// Follows sides from one on until they close, and takes them away. Where an outline meets itself in a corner, it is
/// divided there, so that every ring that is returned is simple.
fn trace(sides: &mut HashMap<Corner, Vec<Corner>>, start: Corner, direction: Corner) -> Vec<Vec<Corner>> {
    let (mut rings, mut path): (Vec<Vec<Corner>>, Vec<Corner>) = (Vec::new(), Vec::new());
    let mut position: HashMap<Corner, usize> = HashMap::new();
    let (mut at, mut along) = (start, direction);
    loop {
        position.insert(at, path.len());
        path.push(at);
        if let Some(out) = sides.get_mut(&at) {
            out.retain(|other| *other != along);
        }
        at = [at[0] + along[0], at[1] + along[1]];
        if let Some(first) = position.get(&at).copied() {
            let ring: Vec<Corner> = path.drain(first..).collect();
            ring.iter().for_each(|corner| {
                position.remove(corner);
            });
            rings.push(ring);
            if path.is_empty() {
                return rings;
            }
        }
        // Left turns first: they stay with the pixel, and pixels that touch in a corner are apart.
        let turns = [[-along[1], along[0]], along, [along[1], -along[0]]];
        let out = sides.get(&at).cloned().unwrap_or_default();
        // As many sides leave a corner as come to it, so that there is one.
        match turns.into_iter().find(|turn| out.contains(turn)) {
            Some(turn) => along = turn,
            None => return rings,
        }
    }
}

/// Twice the area of the triangle `a, b, c`: positive if it turns to the left.
fn cross(a: Corner, b: Corner, c: Corner) -> i64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// The distance of a point from the segment from `a` to `b`.
fn distance(point: Corner, a: Corner, b: Corner) -> f64 {
    let [along, off] = [[b[0] - a[0], b[1] - a[1]], [point[0] - a[0], point[1] - a[1]]].map(|v| v.map(|x| x as f64));
    let length = along[0] * along[0] + along[1] * along[1];
    let t = if length > 0.0 { ((along[0] * off[0] + along[1] * off[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    (off[0] - t * along[0]).hypot(off[1] - t * along[1])
}

/// Leaves out corners as long as the outlines only grow, stay simple and stay within the tolerance.
fn straighten(rings: &mut [Outline], tolerance: f64) {
    let mut changed = true;
    while changed {
        changed = false;
        for which in 0..rings.len() {
            let mut k = 0;
            while k < rings[which].len() && rings[which].len() > 3 {
                if may_leave_out(rings, which, k, tolerance) {
                    let ring = &mut rings[which];
                    let gone = ring.remove(k);
                    let before = (k + ring.len() - 1) % ring.len();
                    ring[before].replaces.push(gone.start);
                    ring[before].replaces.extend(gone.replaces);
                    changed = true;
                } else {
                    k += 1;
                }
            }
        }
    }
}

fn may_leave_out(rings: &[Outline], which: usize, k: usize, tolerance: f64) -> bool {
    let ring = &rings[which];
    let count = ring.len();
    let (before, here, after) = (&ring[(k + count - 1) % count], &ring[k], &ring[(k + 1) % count]);
    let (a, b, c) = (before.start, here.start, after.start);
    let turn = cross(a, b, c);
    if turn > 0 {
        return false;
    }
    let replaced = before.replaces.iter().chain(&here.replaces).chain([&b]);
    if turn == 0 {
        // In the middle of a straight side, not at the tip of a spike.
        return distance(b, a, c) == 0.0;
    }
    if replaced.into_iter().any(|corner| distance(*corner, a, c) > tolerance) {
        return false;
    }
    // The triangle turns to the right: a point is inside if it is on the right of all sides, or on one of them.
    let inside =
        |p: Corner| p != a && p != b && p != c && cross(a, b, p) <= 0 && cross(b, c, p) <= 0 && cross(c, a, p) <= 0;
    !rings.iter().flatten().any(|side| inside(side.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::{Formula, Var, reals};

    fn mask(rows: &[&str]) -> Mask {
        let obstacles = rows.iter().flat_map(|row| row.chars().map(|c| c == '#')).collect();
        Mask { width: rows[0].len(), obstacles }
    }

    fn check(mask: &Mask, tolerance: f64) -> Vec<Polygon> {
        let polygons = mask_polygons(mask, tolerance).unwrap();
        let [x, y] = reals(["x", "y"]);
        let union = Formula::any(polygons.iter().map(|polygon| polygon.to_formula(&x, &y)));
        let union = crate::formula::Membership::new(&union, &Var::declare(["x", "y"]), &[]).unwrap();
        let (width, height) = (mask.width as i64, mask.height() as i64);
        let pixels: Vec<Corner> = (0..width)
            .flat_map(|x| (0..height).map(move |y| [x, y]))
            .filter(|p| mask.is_obstacle(p[0], p[1]))
            .collect();
        for pixel in &pixels {
            for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5)] {
                let point = [pixel[0] as f64 + dx, pixel[1] as f64 + dy];
                assert!(union.contains(&point), "{point:?} of an obstacle is outside");
            }
        }
        for i in -4..=4 * width + 4 {
            for j in -4..=4 * height + 4 {
                let point = [i as f64 / 4.0 + 0.01, j as f64 / 4.0 + 0.02];
                if union.contains(&point) {
                    let gap =
                        |p: &Corner, k: usize| (p[k] as f64 - point[k]).max(point[k] - p[k] as f64 - 1.0).max(0.0);
                    let nearest = pixels.iter().map(|p| gap(p, 0).hypot(gap(p, 1))).fold(f64::INFINITY, f64::min);
                    assert!(nearest <= tolerance + 1e-9, "{point:?} is {nearest} from every obstacle");
                }
            }
        }
        polygons
    }

    #[test]
    fn obstacles_are_covered_and_little_else() {
        let pictures = [
            mask(&["#..", "##.", "###"]),
            // A hole, whose corner touches the outside.
            mask(&["####", "#..#", "##.#", "##.#", "####"]),
            mask(&["###.", "#.#.", "##.#", "...#"]),
            mask(&[".....", ".....", "....."]),
            mask(&["#.#.#", ".#.#.", "#.#.#"]),
            mask(&["..####..", ".######.", "########", "###..###", "###..###", "########", ".######.", "..####.."]),
            mask(&["########", "#......#", "#.####.#", "#.#..#.#", "#.####.#", "#......#", "########"]),
        ];
        for picture in &pictures {
            let exact = check(picture, 0.0);
            let area = exact.iter().fold(Rational::ZERO, |sum, polygon| sum + polygon.area());
            let count = picture.obstacles.iter().filter(|obstacle| **obstacle).count();
            assert_eq!(area, Rational::from(count as i64));
            for tolerance in [0.5, 0.75, 1.5, 3.0] {
                check(picture, tolerance);
            }
        }
        assert_eq!(mask_polygons(&pictures[3], 1.0).unwrap().len(), 0);
        let ring = mask_polygons(&pictures[5], 0.75).unwrap();
        assert_eq!((ring.len(), ring[0].holes().len(), ring[0].points().len()), (1, 1, 8));
    }

    #[test]
    fn random_pictures() {
        let mut random = crate::random::Stream::new(1, 0);
        for _ in 0..60 {
            let obstacles: Vec<bool> = (0..80).map(|_| random.unit() < 0.55).collect();
            let picture = Mask { width: 10, obstacles };
            check(&picture, 0.0);
            check(&picture, 1.0);
        }
    }

    /// A header may claim any size; the size is refused before memory is taken for it.
    #[test]
    fn pictures_that_claim_a_huge_size_are_refused() {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 1, 1);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&[0]).unwrap();
        assert_eq!(Mask::from_png(&bytes, 0.5).unwrap().obstacles, [true]);
        // Width and height follow the signature and the length and name of the first chunk, whose checksum follows them.
        bytes[16..20].copy_from_slice(&(1u32 << 20).to_be_bytes());
        bytes[20..24].copy_from_slice(&(1u32 << 30).to_be_bytes());
        let sum = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        let refused = Mask::from_png(&bytes, 0.5).unwrap_err().to_string();
        assert!(refused.contains("1048576 x 1073741824 pixels"), "{refused}");
    }

    /// The checksum of a chunk of a PNG file, bit by bit.
    fn crc32(bytes: &[u8]) -> u32 {
        let step = |c: u32| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
        !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |c, _| step(c)))
    }
}
