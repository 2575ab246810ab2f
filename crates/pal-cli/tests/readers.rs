//! Constraints in other formats than SMT-LIB and GeoJSON, told apart by the endings of their files.

mod common;

use common::Folder;

/// The volume that `pal volume` prints as JSON.
fn volume(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.pal(&[&["volume"], arguments, &["--json"]].concat()).done();
    let value: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    value["volume_exact"].as_str().unwrap().to_string()
}

#[test]
fn polygons_in_text_and_binary() {
    let folder = Folder::new("readers-polygons");
    folder.write("park.wkt", "POLYGON ((0 0, 4 0, 4 3, 0 3), (1 1, 2 1, 2 1.5, 1 1.5))\nPOLYGON ((6 0, 7 0, 6 1))\n");
    assert_eq!(volume(&folder, &["park.wkt", "--meaning", "walkable"]), "12");
    assert_eq!(volume(&folder, &["park.wkt", "--bounds", "0,0,10,10"]), "88");
    folder.pal(&["check", "park.wkt"]).failed("pal: park.wkt: the map says what is forbidden but not where it ends");
    folder.write("line.wkt", "LINESTRING (0 0, 1 1)");
    folder.pal(&["check", "line.wkt"]).failed("pal: line.wkt: line 1, column 1: LINESTRING encloses no area");
    let mut bytes = vec![1u8, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0];
    [0.0f64, 0.0, 2.0, 0.0, 2.0, 0.5, 0.0, 0.5].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    folder.write("wall.wkb", &bytes);
    assert_eq!(volume(&folder, &["wall.wkb", "--bounds", "0,0,3,1"]), "2");
    folder.write("cut.wkb", &bytes[..20]);
    folder.pal(&["check", "cut.wkb", "--bounds", "0,0,3,1"]).failed("pal: cut.wkb: byte 13: the bytes end");
}

#[test]
fn pictures_of_obstacles() {
    let folder = Folder::new("readers-pictures");
    let mut content = Vec::new();
    let mut encoder = png::Encoder::new(&mut content, 4, 3);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[255, 255, 255, 255, 0, 255, 255, 255, 10, 20, 255, 200]).unwrap();
    writer.finish().unwrap();
    folder.write("map.png", &content);
    assert_eq!(volume(&folder, &["map.png", "--tolerance", "0"]), "9");
    // The step between the three obstacle pixels is filled by a triangle.
    assert_eq!(volume(&folder, &["map.png"]), "17/2");
    assert_eq!(volume(&folder, &["map.png", "--tolerance", "0", "--meaning", "walkable"]), "3");
    folder
        .pal(&["check", "map.png", "--tolerance", "-1"])
        .failed("pal: map.png: the tolerance is a distance in pixels");
    folder.write("not.png", "GIF89a");
    folder.pal(&["check", "not.png"]).failed("pal: not.png: not a PNG file, or a damaged one");
}

#[test]
fn requirements_of_pishield() {
    let folder = Folder::new("readers-pishield");
    folder.write(
        "rules.pishield",
        "ordering y_1 y_0\ny_0 >= 0\n-y_0 >= -1\ny_1 >= 0\n-y_1 >= -2\ny_1 - y_0 >= 0 or y_0 > 0.5\n",
    );
    // Without the triangle y_1 < y_0 <= 1/2.
    assert_eq!(volume(&folder, &["rules.pishield"]), "15/8");
    folder.write("bad.pishield", "ordering y_0\ny_0 > x\n");
    folder.pal(&["check", "bad.pishield"]).failed("pal: bad.pishield: line 2: `x` is not a variable");
    folder
        .pal(&["check", "rules.pishield", "--bounds", "0,0,1,1"])
        .failed("pal: rules.pishield: --meaning and --bounds");
}
