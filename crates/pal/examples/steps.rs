//! Paths that never touch an obstacle: step after step on what can be seen from the last position. The same example in
//! Python, with a network that learns where to go, is `examples/python/steps.py`.

use std::error::Error;

use pal::formula::reals;
use pal::kernel::{KernelFamily, KernelSettings, sample_each};
use pal::region::{Region, RegionMap};

const WALKERS: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    // A hall with two walls, each with a door at another end.
    let [x, y] = reals(["x", "y"]);
    let walls = (x.between(3, 4) & y.between(0, 4)) | (x.between(6, 7) & y.between(2, 6));
    let map = RegionMap::new(&Region::new(&(x.between(0, 9) & y.between(0, 6) & !walls).into())?)?;

    // From behind the first wall one does not see the second room.
    let view = map.visible_windows(&[2.0, 2.0], &[9.0], None, None)?;
    println!("seen from (2, 2): {:.3} of {:.3}", view.volumes()[0], map.region().volume()?);
    assert_eq!(map.contains_segments(&[2.0, 2.0], &[5.0, 2.0])?, [false]);

    // Broad kernels on the box of the windows; a network would choose their places.
    let square = x.between(-2, 2) & y.between(-2, 2);
    let family = KernelFamily::new(&Region::new(&square.into())?, &KernelSettings { components: 4 })?;
    let params = vec![0.0; WALKERS * family.num_params()];
    let mut places = [1.0, 1.0].repeat(WALKERS);
    for step in 0..20 {
        let windows = map.visible_windows(&places, &[2.0], None, None)?;
        let rows = family.on_regions(&windows)?;
        let local = sample_each(&rows.iter().collect::<Vec<_>>(), &params, step)?;
        let next = windows.to_map(&local)?;
        assert!(map.contains_segments(&places, &next)?.into_iter().all(|free| free));
        places = next;
    }
    let through = places.chunks(2).filter(|place| place[0] > 7.0).count();
    println!("{through} of {WALKERS} walkers went through both doors, and none through a wall");
    assert!(through > 0);
    Ok(())
}
