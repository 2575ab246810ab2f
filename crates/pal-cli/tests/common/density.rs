//! Models with known answers, and independent readers of tables.

use serde_json::Value;

use super::Folder;

/// The interval from 0 to 1 and that from 2 to 4.
pub const INTERVALS: &str = "(declare-const t Real)\n(assert (or (<= 0 t 1) (<= 2 t 4)))\n";

/// The corner of the cube: volume 1/6.
pub const TETRAHEDRON: &str = "(declare-const x Real)(declare-const y Real)(declare-const z Real)
(assert (and (>= x 0) (>= y 0) (>= z 0) (<= (+ x y z) 1)))
";

/// Writes a constraint, compiles it with the options and gives it the parameters, as `NAME-model.safetensors`.
pub fn model(folder: &Folder, name: &str, script: &str, options: &[&str], params: &str) -> String {
    let (source, family, table) = (format!("{name}.smt2"), format!("{name}.safetensors"), format!("{name}.csv"));
    let made = format!("{name}-model.safetensors");
    folder.write(&source, script).write(&table, params);
    folder.pal(&[&["compile", &source, "-o", &family, "--quiet"], options].concat()).done();
    folder.pal(&["model", &family, "--params", &table, "-o", &made, "--quiet"]).done();
    made
}

/// Parameters of one spline component that is constant: the values at the knots are those of the offset and 1, the
/// derivatives 0.
pub fn flat(knots: usize, dimension: usize) -> String {
    let axis = [vec!["1"; knots], vec!["0"; knots]].concat();
    [vec!["0"], axis.repeat(dimension)].concat().join(",")
}

/// The uniform density in every kind of family.
pub fn uniform(folder: &Folder, script: &str, dimension: usize) -> [String; 3] {
    let splines = ["--knots", "4", "--components", "1"];
    let squares = ["--family", "sum-of-squares", "--degree", "0", "--components", "1"];
    let histograms = ["--family", "histogram", "--bins", "3", "--components", "1"];
    let zeros = |count: usize| vec!["0"; count].join(",");
    [
        model(folder, "spline", script, &splines, &zeros(1 + 8 * dimension)),
        model(folder, "sum-of-squares", script, &squares, "0,0"),
        model(folder, "histogram", script, &histograms, &zeros(1 + 3 * dimension)),
    ]
}

/// The header and the numbers of CSV text.
pub fn csv(text: &str) -> (Vec<&str>, Vec<Vec<f64>>) {
    let mut lines = text.lines();
    let header = lines.next().unwrap().split(',').collect();
    (header, lines.map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect())
}

/// The numbers of the rows of CSV text.
pub fn rows(text: &str) -> Vec<Vec<f64>> {
    csv(text).1
}

/// The shape and the numbers of an array as NumPy writes it: float64, C order.
pub fn npy(bytes: &[u8]) -> (String, Vec<f64>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\0");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(start.is_multiple_of(64) && bytes[start - 1] == b'\n');
    let header = std::str::from_utf8(&bytes[10..start]).unwrap();
    assert!(header.contains("'descr': '<f8'") && header.contains("'fortran_order': False"), "{header}");
    let shape = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let values = bytes[start..].chunks(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap())).collect();
    (shape.to_string(), values)
}

/// An array file with a header of our own.
pub fn npy_file(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n");
    [&b"\x93NUMPY\x01\0\x76\0"[..], header.as_bytes(), values].concat()
}

#[track_caller]
pub fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{found} instead of {wanted}");
}

/// A number of a JSON object, by its path.
#[track_caller]
pub fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {value}"))
}
