//! The forms of several parts of a support as one.
//!
//! Parts have no volume in common. Where they fill a bin together, one of them, the one with the largest volume there,
//! gets no table: with F the integral over the whole bin, a product, and `I_g` those over the other parts,
//!
//! ```text
//! P_rest (F - sum_g I_g)  +  sum_g P_g I_g   =   P_rest F  +  sum_g (P_g - P_rest) I_g.
//! ```
//!
//! A bin that one wall cuts then costs one table instead of two. The difference is as accurate as a table would be: its
//! entries have both signs, and their rounding errors are those of the whole bin too.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::contract::{Contraction, FormPart};
use super::form::{BinForm, BoxPart, BoxSide};
use super::hermite::SQUARE;
use crate::density::grid::{BinIndex, Grid};
use crate::density::lanes::Real;

/// Volumes that differ by at most this fraction are the same.
const SAME_VOLUME: f64 = 1e-12;

/// The integrals of products over the parts of a set, which share intervals and, where they are equal, tables.
#[derive(Clone, Debug)]
pub(super) struct PartsForm<T> {
    /// How sums are computed.
    pub plan: Contraction<T>,
    /// The tables of the cut bins of all parts.
    pub tables: Vec<T>,
}

impl<T: Real> PartsForm<T> {
    /// Joins forms on the same grid, one for each part, and writes them in the numbers that `convert` leads to.
    pub fn join(forms: &[&BinForm<f64>], grid: &Grid, convert: impl Fn(&BinForm<f64>) -> BinForm<T>) -> PartsForm<T> {
        let (forms, rests) = without_rests(forms, grid);
        let mut forms: Vec<BinForm<T>> = forms.iter().map(convert).collect();
        let (bins, step) = (forms[0].bins.clone(), forms[0].step);
        let mut intervals: Vec<Vec<BoxSide<T>>> = vec![Vec::new(); bins.len()];
        let mut known: Vec<HashMap<(BinIndex, [u64; SQUARE]), u32>> = vec![HashMap::new(); bins.len()];
        let mut known_tables: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut tables = Vec::new();
        for form in &mut forms {
            for (axis, own) in form.intervals.iter().enumerate() {
                let mut place = |side: &BoxSide<T>| {
                    let key = (side.bin, side.means.map(|mean| mean.to_f64().to_bits()));
                    *known[axis].entry(key).or_insert_with(|| {
                        intervals[axis].push(side.clone());
                        intervals[axis].len() as u32 - 1
                    })
                };
                let places: Vec<u32> = own.iter().map(&mut place).collect();
                form.boxes.iter_mut().for_each(|part| part.sides[axis] = places[part.sides[axis] as usize]);
            }
            // Boxes with the same first sides are neighbours: all that nested sums need.
            form.boxes.sort_by(|a, b| a.sides.cmp(&b.sides));
            let place = |table: &[T]| {
                let key = table.iter().map(|x| x.to_f64().to_bits()).collect();
                let next = known_tables.len() as u32;
                let place = *known_tables.entry(key).or_insert(next);
                if place == next {
                    tables.extend_from_slice(table);
                }
                place
            };
            let places: Vec<u32> = form.tables.chunks(form.table_len()).map(place).collect();
            form.cut.iter_mut().for_each(|cut| cut.table = places[cut.table as usize]);
        }
        let parts = forms.iter().zip(&rests);
        let parts: Vec<FormPart<'_, T>> =
            parts.map(|(form, rests)| FormPart { boxes: &form.boxes, cut: &form.cut, rests }).collect();
        PartsForm { plan: Contraction::new(&bins, step, &intervals, &parts), tables }
    }
}

/// The forms of all parts, and for each of their cut bins the part that has what is left of the bin; that part has the
/// whole bin as a box.
fn without_rests(forms: &[&BinForm<f64>], grid: &Grid) -> (Vec<BinForm<f64>>, Vec<Vec<Option<usize>>>) {
    let mut by_bin: BTreeMap<&[BinIndex], Vec<(usize, f64)>> = BTreeMap::new();
    let mut with_boxes: HashSet<Vec<BinIndex>> = HashSet::new();
    for (part, form) in forms.iter().enumerate() {
        for cut in &form.cut {
            // Bernstein polynomials add up to 1.
            let table = &form.tables[cut.table as usize * form.table_len()..][..form.table_len()];
            by_bin.entry(&cut.bin).or_default().push((part, table.iter().sum()));
        }
        for part in &form.boxes {
            let sides = part.sides.iter().zip(&form.intervals);
            with_boxes.insert(sides.map(|(side, axis)| axis[*side as usize].bin).collect());
        }
    }
    let mut rest_of: HashMap<&[BinIndex], usize> = HashMap::new();
    for (bin, parts) in &by_bin {
        let (whole, filled) = (grid.bin_fraction(bin), parts.iter().map(|(_, volume)| volume).sum::<f64>());
        if !with_boxes.contains(*bin) && (filled - whole).abs() <= SAME_VOLUME * whole {
            let largest = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a bin with an entry");
            rest_of.insert(bin, largest.0);
        }
    }
    let mut joined = Vec::with_capacity(forms.len());
    let mut rests = Vec::with_capacity(forms.len());
    for (part, form) in forms.iter().enumerate() {
        let (mut intervals, mut boxes) = (form.intervals.clone(), form.boxes.clone());
        let (mut cut, mut own) = (Vec::new(), Vec::new());
        for entry in &form.cut {
            match rest_of.get(&entry.bin[..]) {
                Some(rest) if *rest == part => {
                    let sides = intervals.iter_mut().zip(&entry.bin).map(|(axis, bin)| {
                        // The mean of every Bernstein polynomial over a bin is the same.
                        axis.push(BoxSide { bin: *bin, means: [1.0 / SQUARE as f64; SQUARE] });
                        axis.len() as u32 - 1
                    });
                    boxes.push(BoxPart { sides: sides.collect(), volume: grid.bin_fraction(&entry.bin) });
                }
                rest => {
                    cut.push(entry.clone());
                    own.push(rest.copied());
                }
            }
        }
        joined.push(form.with_entries(intervals, boxes, cut));
        rests.push(own);
    }
    (joined, rests)
}
