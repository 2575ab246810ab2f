//! Soft colours, different for cells that touch.

use plotters::style::RGBColor;

use super::CellShape;

pub const INK: RGBColor = RGBColor(38, 38, 44);
pub const MUTED: RGBColor = RGBColor(98, 101, 112);
pub const BOUNDARY: RGBColor = RGBColor(58, 64, 82);
pub const CELL_EDGE: RGBColor = RGBColor(118, 126, 146);
pub const TRIANGLE_EDGE: RGBColor = RGBColor(132, 138, 156);
pub const FORBIDDEN: RGBColor = RGBColor(240, 240, 242);
pub const HATCH: RGBColor = RGBColor(202, 203, 209);
pub const REGION: RGBColor = RGBColor(214, 228, 243);

const PALETTE: [RGBColor; 10] = [
    RGBColor(188, 214, 237),
    RGBColor(252, 217, 180),
    RGBColor(199, 229, 190),
    RGBColor(219, 202, 232),
    RGBColor(250, 238, 176),
    RGBColor(247, 204, 205),
    RGBColor(183, 224, 219),
    RGBColor(230, 216, 190),
    RGBColor(208, 216, 250),
    RGBColor(224, 235, 167),
];

/// One colour per cell: of those not taken by touching cells, the one used least so far. Touching is judged by bounding
/// boxes; where too many touch, the colour is merely the least used one.
pub fn choose(cells: &[CellShape]) -> Vec<RGBColor> {
    let boxes: Vec<_> = cells.iter().map(|cell| [cell.extent(0), cell.extent(1)]).collect();
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|a, b| boxes[*a][0].0.total_cmp(&boxes[*b][0].0));
    let mut chosen: Vec<usize> = vec![0; cells.len()];
    let mut used = [0usize; PALETTE.len()];
    // Cells met so far that reach the sweep line.
    let mut active: Vec<usize> = Vec::new();
    for cell in order {
        let [(left, _), (bottom, top)] = boxes[cell];
        active.retain(|other| boxes[*other][0].1 >= left);
        let mut taken = [false; PALETTE.len()];
        for other in &active {
            if boxes[*other][1].1 >= bottom && boxes[*other][1].0 <= top {
                taken[chosen[*other]] = true;
            }
        }
        let colour = (0..PALETTE.len()).min_by_key(|c| (taken[*c], used[*c])).unwrap_or(0);
        chosen[cell] = colour;
        used[colour] += 1;
        active.push(cell);
    }
    chosen.into_iter().map(|colour| PALETTE[colour]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_cells_differ() {
        let square = |x: f64, y: f64| CellShape {
            outline: vec![[x, y], [x + 1.0, y], [x + 1.0, y + 1.0], [x, y + 1.0]],
            inner: Vec::new(),
        };
        let cells: Vec<CellShape> = (0..100).map(|k| square((k % 10) as f64, (k / 10) as f64)).collect();
        let colours = choose(&cells);
        for k in 0..90 {
            assert_ne!(colours[k], colours[k + 10]);
            assert!(k % 10 == 9 || colours[k] != colours[k + 1]);
        }
    }
}
