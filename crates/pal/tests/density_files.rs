//! Files are read back bit for bit, and damaged files are refused.

mod common;

use std::collections::{BTreeMap, HashMap};

use common::densities::{Case, catalogue, spline, sum_of_squares};
use pal::density::{Basis, Family, FileError, Model};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn files_hold_everything_bit_for_bit() {
    for case in catalogue() {
        let family = case.compile();
        let params = family.random_params(2, 3);
        let model = Model::new(family.clone(), params.clone()).unwrap();
        let bytes = model.to_bytes().unwrap();
        let read = Model::from_bytes(&bytes).unwrap();
        assert_eq!(bits(read.params()), bits(&params), "{case}");
        assert_eq!((read.rows(), read.family().kind().settings()), (2, case.settings.clone()), "{case}");
        assert_eq!(read.family().support().constraint().reals, case.constraint.reals, "{case}");
        // The same tensors, log-densities, gradients and samples, to the last bit.
        let tensors = |family: &Family| {
            let parts = family.kind().tensors().into_iter();
            parts.map(|tensor| (tensor.name, tensor.shape, bits(&tensor.values))).collect::<Vec<_>>()
        };
        assert_eq!(tensors(read.family()), tensors(&family), "{case}");
        let points = case.inside(20);
        let one = &params[..family.num_params()];
        let count = points.len() / case.dimension();
        for (a, b) in [
            (family.log_prob(one, &points), read.family().log_prob(one, &points)),
            (family.log_normaliser(&params), read.family().log_normaliser(&params)),
            (
                family.log_prob_vjp(one, &points, &vec![1.0; count]),
                read.family().log_prob_vjp(one, &points, &vec![1.0; count]),
            ),
        ] {
            assert_eq!(bits(&a.unwrap()), bits(&b.unwrap()), "{case}");
        }
        let draw = |family: &Family| family.sample(&params, 20, 1).unwrap();
        assert_eq!(bits(&draw(&family)), bits(&draw(read.family())), "{case}");
        // Writing the model again, and writing the family alone.
        assert_eq!(read.to_bytes().unwrap(), bytes, "{case}");
        let alone = family.to_bytes().unwrap();
        assert_eq!(Family::from_bytes(&alone).unwrap().to_bytes().unwrap(), alone, "{case}");
        assert!(matches!(Model::from_bytes(&alone), Err(FileError::NoParams)), "{case}");
        assert_eq!(tensors(&Family::from_bytes(&bytes).unwrap()), tensors(&family), "{case}");
    }
}

fn models() -> Vec<(Case, Model)> {
    let cases = [
        Case::new("triangle", spline(2, 2)),
        Case::new("notched", sum_of_squares(2, 1, Basis::Orthonormal)),
        Case::new("box", sum_of_squares(1, 2, Basis::Monomial)),
    ];
    let model = |case: Case| {
        let family = case.compile();
        let params = family.random_params(2, 4);
        (case, Model::new(family, params).unwrap())
    };
    cases.map(model).into()
}

/// Whether a file is refused; if it is not, it must hold exactly the original.
fn refused_or_same(bytes: &[u8], original: &[u8], what: &str) -> bool {
    match Model::from_bytes(bytes) {
        Err(error) => !error.to_string().is_empty(),
        Ok(model) => {
            assert_eq!(model.to_bytes().unwrap(), original, "{what}: read as another model");
            false
        }
    }
}

#[test]
fn truncated_files_are_refused() {
    for (case, model) in models() {
        let bytes = model.to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(Model::from_bytes(&bytes[..length]).is_err(), "{case}: {length} of {} bytes", bytes.len());
        }
        assert!(Model::from_bytes(&[&bytes[..], &[0; 8]].concat()).is_err(), "{case}: longer");
    }
}

#[test]
fn a_flipped_bit_is_noticed_anywhere() {
    for (case, model) in models() {
        let bytes = model.to_bytes().unwrap();
        let mut noticed = 0;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            noticed += usize::from(refused_or_same(&damaged, &bytes, &format!("{case}: byte {at}")));
        }
        assert_eq!(noticed, bytes.len(), "{case}: every byte is under the checksum");
    }
}

/// A file whose checksum fits, but whose normaliser does not belong to its constraint: probabilities would not add up
/// to 1.
#[test]
fn a_forged_normaliser_is_refused() {
    for (case, model) in models() {
        for name in ["tables", "boxes", "basis", "volumes", "form"] {
            let Some((_, _, data)) = Parts::of(&model).tensors.get(name).cloned() else { continue };
            for factor in [1.15, 1.0 + 1e-4, -1.0] {
                let mut parts = Parts::of(&model);
                let scaled =
                    data.chunks(8).flat_map(|x| (f64::from_le_bytes(x.try_into().unwrap()) * factor).to_le_bytes());
                parts.tensor(name).2 = scaled.collect();
                // Scaled functions and scaled integrals would cancel, were both in the file.
                let read = Model::from_bytes(&parts.forged());
                match read {
                    Err(error) => assert!(!error.to_string().is_empty()),
                    Ok(model) => {
                        let density = model.family().density(&model.params()[..model.family().num_params()]).unwrap();
                        let one = pal::polynomial::Polynomial::one();
                        let mass = density.expectation(&one).unwrap();
                        assert!((mass - 1.0).abs() < 1e-9, "{case}: {name} times {factor} has mass {mass}");
                    }
                }
            }
        }
    }
}

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// A file taken apart, to be changed and put together again with a checksum that fits.
struct Parts {
    metadata: HashMap<String, String>,
    tensors: Tensors,
}

impl Parts {
    fn of(model: &Model) -> Parts {
        let bytes = model.to_bytes().unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file
            .tensors()
            .into_iter()
            .map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec())));
        Parts { metadata: header.metadata().clone().unwrap(), tensors: tensors.collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        let views = self
            .tensors
            .iter()
            .map(|(name, (dtype, shape, data))| (name.clone(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
        safetensors::serialize(views, Some(self.metadata.clone())).unwrap()
    }

    /// With the checksum that a careful forger would write: the hash of XXH3 over the whole file, zeros in its place.
    fn forged(mut self) -> Vec<u8> {
        let zeros = "0".repeat(16);
        self.metadata.insert("checksum".to_string(), zeros.clone());
        let mut bytes = self.bytes();
        let place = format!("\"checksum\":\"{zeros}\"");
        let at = bytes.windows(place.len()).position(|window| window == place.as_bytes()).unwrap() + place.len() - 17;
        let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes));
        bytes[at..at + 16].copy_from_slice(sum.as_bytes());
        bytes
    }

    fn tensor(&mut self, name: &str) -> &mut (Dtype, Vec<usize>, Vec<u8>) {
        self.tensors.get_mut(name).unwrap()
    }
}

#[test]
fn altered_metadata_are_refused() {
    for (case, model) in models() {
        let bytes = model.to_bytes().unwrap();
        assert_eq!(
            Model::from_bytes(&Parts::of(&model).forged()).unwrap().to_bytes().unwrap(),
            bytes,
            "{case}: unchanged"
        );
        for name in ["version", "checksum", "constraint", "settings"] {
            let mut parts = Parts::of(&model);
            parts.metadata.remove(name);
            assert!(Model::from_bytes(&parts.bytes()).is_err(), "{case}: without {name}");
            let mut parts = Parts::of(&model);
            parts.metadata.get_mut(name).unwrap().push(' ');
            assert!(Model::from_bytes(&parts.bytes()).is_err(), "{case}: {name} with a blank");
        }
        let mut parts = Parts::of(&model);
        parts.metadata.insert("version".to_string(), "pal-density-2".to_string());
        assert!(
            matches!(Model::from_bytes(&parts.forged()), Err(FileError::Version(v)) if v == "pal-density-2"),
            "{case}"
        );
        let mut parts = Parts::of(&model);
        parts.metadata.clear();
        assert!(matches!(Model::from_bytes(&parts.bytes()), Err(FileError::Version(_))), "{case}");
    }
}

/// Files that contradict themselves, with a checksum that fits.
#[test]
fn contradictions_are_refused() {
    for (case, model) in models() {
        let width = model.family().num_params();
        let filled = |name: &&str| Parts::of(&model).tensors.get(*name).is_some_and(|tensor| tensor.2.len() >= 16);
        let table = ["tables", "boxes", "basis"].into_iter().find(filled).unwrap();
        let edit = |edit: &dyn Fn(&mut Parts)| {
            let mut parts = Parts::of(&model);
            edit(&mut parts);
            Model::from_bytes(&parts.forged())
        };
        let put = |parts: &mut Parts, name: &str, value: f64| {
            parts.tensor(name).2[8..16].copy_from_slice(&value.to_le_bytes())
        };
        assert!(edit(&|parts| put(parts, "params", 0.25)).is_ok(), "{case}: other parameters are fine");
        for value in [f64::NAN, f64::INFINITY] {
            assert!(edit(&|parts| put(parts, "params", value)).is_err(), "{case}: {value} as a parameter");
            assert!(edit(&|parts| put(parts, table, value)).is_err(), "{case}: {value} in {table}");
        }
        assert!(
            edit(&|parts| (parts.tensor("params").1, parts.tensor("params").2) = (vec![0, width], Vec::new())).is_err(),
            "{case}: no rows"
        );
        assert!(edit(&|parts| parts.tensor("params").1 = vec![width, 2]).is_err(), "{case}: turned parameters");
        let nothing: Vec<u8> = model.family().offset().iter().flat_map(|offset| (-offset).to_le_bytes()).collect();
        let nothing = nothing.repeat(2);
        assert!(
            edit(&|parts| parts.tensor("params").2.copy_from_slice(&nothing)).is_err(),
            "{case}: a density of zero"
        );
        assert!(
            edit(&|parts| {
                parts.tensors.remove(table);
            })
            .is_err(),
            "{case}: without {table}"
        );
        assert!(edit(&|parts| parts.tensor(table).1.reverse()).is_err(), "{case}: turned {table}");
        assert!(
            edit(&|parts| {
                parts.tensor(table).1 = vec![parts.tensor(table).2.len() / 8];
            })
            .is_err(),
            "{case}: flat {table}"
        );
        assert!(
            edit(&|parts| {
                parts.tensor(table).0 = Dtype::I64;
            })
            .is_err(),
            "{case}: integers"
        );
        for constraint in ["", "(", "(declare-const x1 Real)(assert (> x1 0))", "(declare-const b Bool)(assert b)"] {
            let text = constraint.to_string();
            let swap = |parts: &mut Parts| parts.metadata.insert("constraint".to_string(), text.clone());
            assert!(
                edit(&|parts| {
                    swap(parts);
                })
                .is_err(),
                "{case}: constraint {constraint}"
            );
        }
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let texts = [
        "",
        "{}",
        r#"{"family":"other"}"#,
        r#"{"family":"spline","knots":{"uniform":1},"components":1}"#,
        r#"{"family":"spline","knots":{"uniform":1000000000},"components":1}"#,
        r#"{"family":"spline","knots":{"uniform":18446744073709551615},"components":18446744073709551615}"#,
        r#"{"family":"spline","knots":{"at":[["0","1"]]},"components":1}"#,
        r#"{"family":"spline","knots":{"at":[["0","1/0"],["0","1"]]},"components":1}"#,
        r#"{"family":"spline","knots":{"at":[["1","0"],["0","1"]]},"components":1}"#,
        r#"{"family":"spline","knots":{"at":[[],[]]},"components":1}"#,
        r#"{"family":"spline","knots":{"uniform":3},"components":0}"#,
        r#"{"family":"spline","knots":{"uniform":2},"components":2,"more":1}"#,
        r#"{"family":"sum-of-squares","degree":65535,"components":1}"#,
        r#"{"family":"sum-of-squares","degree":2,"components":0}"#,
        r#"{"family":"sum-of-squares","degree":2,"components":1,"subset":{"terms":0,"seed":1}}"#,
        r#"{"family":"sum-of-squares","degree":2,"components":1,"subset":{"terms":7,"seed":1}}"#,
        r#"{"family":"sum-of-squares","degree":-1,"components":1}"#,
    ];
    for (case, model) in models() {
        for text in texts {
            let mut parts = Parts::of(&model);
            parts.metadata.insert("settings".to_string(), text.to_string());
            assert!(Model::from_bytes(&parts.forged()).is_err(), "{case}: settings {text}");
        }
    }
}

/// Headers that announce more data than the file has.
#[test]
fn huge_shapes_are_refused() {
    let huge =
        ["4611686018427387904,4", "18446744073709551615", "1000000000000,1000000000000", "1125899906842624,8192"];
    for shape in huge {
        for end in [0u64, 64, 1 << 60, u64::MAX] {
            let metadata = r#"{"version":"pal-density-4","constraint":"","settings":"","checksum":""}"#;
            let params = format!(r#"{{"dtype":"F64","shape":[{shape}],"data_offsets":[0,{end}]}}"#);
            let header = format!(r#"{{"__metadata__":{metadata},"params":{params}}}"#);
            for size in [header.len() as u64, u64::MAX, 1 << 40] {
                let bytes = [&size.to_le_bytes()[..], header.as_bytes(), &[0; 64]].concat();
                assert!(
                    Model::from_bytes(&bytes).is_err() && Family::from_bytes(&bytes).is_err(),
                    "{shape} {end} {size}"
                );
            }
        }
    }
}
