//! Pictures of obstacles.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pal::formula::{Mask, mask_polygons};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mask) = Mask::from_png(bytes, 0.5) else { return };
    if mask.obstacles.len() <= 400 {
        let Ok(polygons) = mask_polygons(&mask, 0.0) else { return };
        // Without a tolerance the polygons are the pixels and nothing else.
        let pixels = mask.obstacles.iter().filter(|obstacle| **obstacle).count();
        let areas: Vec<_> = polygons.iter().map(|polygon| polygon.area()).collect();
        let sum = areas.into_iter().reduce(|sum, area| sum + area);
        assert_eq!(sum.map_or("0".to_string(), |sum| sum.to_string()), pixels.to_string());
    }
});
