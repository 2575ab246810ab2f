//! Boxes in three variables cut by half-spaces, fast and with certain signs.
//!
//! Coordinates are double-doubles with bounds on their errors. A corner that may lie on the boundary of a half-space ends
//! the work with [`Doubt`]: whoever called it starts again by the search that works for all regions. So no corner lies on
//! more than three planes, and what is left of a box after a cut is known by its faces alone.

use smallvec::SmallVec;

use super::planar::Doubt;
use crate::double_double::{DoubleDouble, RELATIVE_ERROR};

/// The half-space `offset + normal . t <= 0` in coordinates that run from 0 to 1 over a box.
#[derive(Clone, Debug)]
pub(crate) struct Wall {
    pub normal: [DoubleDouble; 3],
    pub offset: DoubleDouble,
    /// A bound on the error of `offset + normal . t` in the box, because both are rounded.
    pub error: f64,
}

#[derive(Clone, Debug)]
struct SolidCorner {
    at: [DoubleDouble; 3],
    /// A bound on the error of each coordinate.
    error: f64,
}

/// A face: its corners, counter-clockwise from outside.
#[derive(Clone, Debug)]
struct SolidFace {
    /// Which side of the box it lies in, for the lower and upper one of each axis in turn; 6 for none.
    side: u8,
    corners: SmallVec<[u16; 8]>,
}

/// Between two planes orthogonal to the first axis, a part of a face: for both of them the other coordinates of its ends.
/// It is seen from above if the ends of `to` are higher along the second axis than those of `from`, and from below if not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaceStrip {
    pub x: [f64; 2],
    pub from: [[f64; 2]; 2],
    pub to: [[f64; 2]; 2],
}

/// What half-spaces leave of a box, in coordinates that run from 0 to 1 over it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solid {
    corners: Vec<SolidCorner>,
    faces: Vec<SolidFace>,
    /// Memory of a cut: the values at all corners, what becomes of corners, crossings by their edge, and the edges of
    /// the new face.
    values: Vec<DoubleDouble>,
    places: Vec<u16>,
    crossings: Vec<([u16; 2], u16)>,
    links: Vec<[u16; 2]>,
}

/// The corners of the sides of a box; bits of their numbers are their coordinates, the first axis having the lowest one.
const SIDES: [[u16; 4]; 6] = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
/// The number of the upper side along the last axis.
const TOP: u8 = 5;

impl Solid {
    /// Starts with the whole box.
    pub fn reset(&mut self) {
        let corner = |k: usize| SolidCorner {
            at: [0, 1, 2].map(|axis| DoubleDouble::new(f64::from(u8::from(k & (1 << axis) != 0)))),
            error: 0.0,
        };
        self.corners.clear();
        self.corners.extend((0..8).map(corner));
        self.faces.clear();
        let sides = SIDES.iter().enumerate();
        self.faces.extend(
            sides.map(|(side, corners)| SolidFace { side: side as u8, corners: SmallVec::from_slice(corners) }),
        );
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// Leaves the part in a half-space. A corner too close to its boundary is in doubt.
    pub fn clip(&mut self, wall: &Wall) -> Result<(), Doubt> {
        let size = wall.normal.iter().map(|a| a.high.abs()).sum::<f64>();
        self.values.clear();
        for corner in &self.corners {
            let terms = [0, 1, 2].map(|axis| wall.normal[axis].times(corner.at[axis]));
            let value = terms[0].plus(terms[1]).plus(terms[2]).plus(wall.offset);
            let rounding = 16.0 * RELATIVE_ERROR * (size + wall.offset.high.abs());
            let bound = 4.0 * (wall.error + size * corner.error + rounding);
            // A NaN is in doubt too.
            if !(value.high.abs() > bound) {
                return Err(Doubt);
            }
            self.values.push(value);
        }
        let inside = |value: &DoubleDouble| value.high < 0.0;
        if self.values.iter().all(inside) {
            return Ok(());
        }
        let mut kept = 0;
        self.places.clear();
        for value in &self.values {
            self.places.push(kept);
            kept += u16::from(inside(value));
        }
        if kept == 0 {
            self.corners.clear();
            self.faces.clear();
            return Ok(());
        }
        self.crossings.clear();
        self.links.clear();
        let mut new = Vec::with_capacity(8);
        for face in &mut self.faces {
            let mut corners = SmallVec::new();
            let (mut leaves, mut enters) = (None, None);
            for (k, to) in face.corners.iter().enumerate() {
                let from = face.corners[if k == 0 { face.corners.len() - 1 } else { k - 1 }];
                let [before, after] = [from, *to].map(|corner| inside(&self.values[usize::from(corner)]));
                if before != after {
                    let edge = [from.min(*to), from.max(*to)];
                    let known = self.crossings.iter().find(|(other, _)| *other == edge).map(|(_, place)| *place);
                    let place = known.unwrap_or_else(|| {
                        let place = kept + new.len() as u16;
                        new.push(crossing(&self.corners, &self.values, edge, wall, size));
                        self.crossings.push((edge, place));
                        place
                    });
                    corners.push(place);
                    *(if before { &mut leaves } else { &mut enters }) = Some(place);
                }
                if after {
                    corners.push(self.places[usize::from(*to)]);
                }
            }
            if let (Some(leaves), Some(enters)) = (leaves, enters) {
                self.links.push([enters, leaves]);
            }
            face.corners = corners;
        }
        self.faces.retain(|face| !face.corners.is_empty());
        // The new face runs along the faces that are cut, against their direction.
        let mut corners: SmallVec<[u16; 8]> = SmallVec::new();
        let mut at = self.links[0][0];
        for _ in 0..self.links.len() {
            corners.push(at);
            let next = self.links.iter().find(|link| link[0] == at).ok_or(Doubt)?;
            at = next[1];
        }
        self.faces.push(SolidFace { side: 6, corners });
        let mut values = self.values.iter();
        self.corners.retain(|_| values.next().is_some_and(inside));
        self.corners.append(&mut new);
        Ok(())
    }

    /// The volume as a fraction of the box, to some units of rounding of the whole box.
    pub fn rough_volume(&self) -> f64 {
        let mut six = 0.0;
        self.each_tetrahedron(|corners| {
            let [a, b, c, d] = corners.map(|corner| corner.at.map(|x| x.high));
            let [p, q, r] = [b, c, d].map(|x| [x[0] - a[0], x[1] - a[1], x[2] - a[2]]);
            six += p[0] * (q[1] * r[2] - q[2] * r[1])
                + p[1] * (q[2] * r[0] - q[0] * r[2])
                + p[2] * (q[0] * r[1] - q[1] * r[0]);
        });
        six / 6.0
    }

    /// A bound on the errors of all coordinates.
    pub fn corner_error(&self) -> f64 {
        self.corners.iter().map(|corner| corner.error).fold(0.0, f64::max)
    }

    /// Divides the solid into tetrahedra: visits the corners of each and six times its volume, all rounded once. In
    /// doubt if errors of corners may change volumes by more than a relative `tolerance`.
    pub fn tetrahedra(&self, tolerance: f64, mut visit: impl FnMut([[f64; 3]; 4], f64)) -> Result<(), Doubt> {
        let mut six = 0.0;
        self.each_tetrahedron(|corners| {
            let [a, ..] = corners;
            let difference = |k: usize| [0, 1, 2].map(|axis| corners[k].at[axis].minus(a.at[axis]));
            let [p, q, r] = [1, 2, 3].map(difference);
            let minor = |i: usize, j: usize| q[i].times(r[j]).minus(q[j].times(r[i]));
            let terms = [p[0].times(minor(1, 2)), p[1].times(minor(2, 0)), p[2].times(minor(0, 1))];
            let size = terms[0].plus(terms[1]).plus(terms[2]).high;
            six += size;
            if size > 0.0 {
                visit(corners.map(|corner| corner.at.map(|x| x.high)), size);
            }
        });
        // A shift of the boundary changes the volume by at most the surface times the shift, and the surface of a convex
        // set is at most that of a box around it.
        let mut extent = [0.0; 3];
        for (axis, extent) in extent.iter_mut().enumerate() {
            let at = |corner: &SolidCorner| corner.at[axis].high;
            let least = self.corners.iter().map(at).fold(f64::INFINITY, f64::min);
            *extent = self.corners.iter().map(at).fold(f64::NEG_INFINITY, f64::max) - least;
        }
        let surface = 2.0 * (extent[0] * extent[1] + extent[1] * extent[2] + extent[2] * extent[0]);
        let rounding = 64.0 * RELATIVE_ERROR * self.corners.len() as f64;
        // Not `>`: a NaN is in doubt.
        if 2.0 * surface * self.corner_error() + rounding <= tolerance * six { Ok(()) } else { Err(Doubt) }
    }

    fn each_tetrahedron<'s>(&'s self, mut visit: impl FnMut([&'s SolidCorner; 4])) {
        let Some(first) = self.faces.first() else { return };
        let apex = first.corners[0];
        for face in self.faces.iter().filter(|face| !face.corners.contains(&apex)) {
            for pair in face.corners[1..].windows(2) {
                visit([apex, face.corners[0], pair[0], pair[1]].map(|k| &self.corners[usize::from(k)]));
            }
        }
    }

    /// Visits all faces that are not in a side of the box along the first or second axis, nor in the lower one along the
    /// last axis, in strips between planes orthogonal to the first axis, with rounded coordinates.
    pub fn strips(&self, mut visit: impl FnMut(FaceStrip)) {
        for face in self.faces.iter().filter(|face| face.side >= TOP) {
            let corners: SmallVec<[[f64; 3]; 8]> =
                face.corners.iter().map(|k| self.corners[usize::from(*k)].at.map(|x| x.high)).collect();
            let mut places: SmallVec<[f64; 8]> = corners.iter().map(|corner| corner[0]).collect();
            places.sort_unstable_by(f64::total_cmp);
            for x in places.windows(2).filter(|x| x[0] < x[1]) {
                let across = |forward: bool| {
                    let edges = corners.iter().zip(corners.iter().cycle().skip(1));
                    let mut ends = edges.map(|(a, b)| if forward { (a, b) } else { (b, a) });
                    let (a, b) = ends.find(|(a, b)| a[0] <= x[0] && x[1] <= b[0])?;
                    let at = |x: f64| {
                        let way = (x - a[0]) / (b[0] - a[0]);
                        [1, 2].map(|axis| a[axis] + way * (b[axis] - a[axis]))
                    };
                    Some([at(x[0]), at(x[1])])
                };
                if let (Some(from), Some(to)) = (across(true), across(false)) {
                    visit(FaceStrip { x: [x[0], x[1]], from, to });
                }
            }
        }
    }
}

/// Where an edge with ends on different sides of a wall crosses it.
fn crossing(corners: &[SolidCorner], values: &[DoubleDouble], edge: [u16; 2], wall: &Wall, size: f64) -> SolidCorner {
    let [(a, p), (b, q)] = edge.map(|k| (&corners[usize::from(k)], values[usize::from(k)]));
    let way = p.over(p.minus(q));
    let at = [0, 1, 2].map(|axis| a.at[axis].plus(way.times(b.at[axis].minus(a.at[axis]))));
    let inherited = a.error.max(b.error);
    // What is wrong with a value shifts the crossing along the edge.
    let rounding = 32.0 * RELATIVE_ERROR * (1.0 + size + wall.offset.high.abs());
    let value_error = wall.error + size * inherited + rounding;
    let length = [0, 1, 2].map(|axis| b.at[axis].minus(a.at[axis]).high.abs()).into_iter().fold(0.0, f64::max);
    let shift = value_error / p.minus(q).high.abs();
    SolidCorner { at, error: inherited + 4.0 * shift * length + 32.0 * RELATIVE_ERROR }
}
