//! Membership of points with all coordinates, on flats too.

use std::sync::Arc;

use super::Chart;
use crate::formula::{Membership, MembershipError};
use crate::region::Region;

/// A test whether points lie in a region: exact, unless the region is a flat. On a flat, the free coordinates are tested exactly
/// against what remains of the constraint, and dependent ones up to rounding ([`Chart::restrict`]).
#[derive(Clone, Debug)]
pub struct RegionMembership {
    membership: Membership,
    chart: Option<Arc<Chart>>,
}

impl RegionMembership {
    /// Whether each point lies in the region; points are given row by row.
    pub fn contains_batch(&self, points: &[f64]) -> Vec<bool> {
        match &self.chart {
            None => self.membership.contains_batch(points),
            // A point in no dimension is on the flat or not.
            Some(chart) if chart.dimension() == 0 => {
                let filled = chart.fill(&[]);
                let n = filled.len().max(1);
                points.chunks_exact(n).map(|point| close(point, &filled)).collect()
            }
            Some(chart) => self.membership.contains_batch(&chart.restrict(points, f64::EPSILON)),
        }
    }

    /// Whether each point with truth values lies in the region: every row has its coordinates first and then a 1 for every
    /// Boolean variable that is true, and any other number for those that are not.
    pub fn contains_mixed_batch(&self, points: &[f64], booleans: usize) -> Vec<bool> {
        let reals = self.chart.as_ref().map_or(self.membership.dimension(), |chart| chart.variables().len());
        let contains = |point: &[f64]| {
            let (coordinates, truth) = point.split_at(reals);
            let truth: Vec<bool> = truth.iter().map(|value| *value == 1.0).collect();
            match &self.chart {
                None => self.membership.contains_with(coordinates, &truth),
                Some(chart) if chart.dimension() == 0 => {
                    close(coordinates, &chart.fill(&[])) && self.membership.contains_with(&[], &truth)
                }
                Some(chart) => self.membership.contains_with(&chart.restrict(coordinates, f64::EPSILON), &truth),
            }
        };
        points.chunks_exact((reals + booleans).max(1)).map(contains).collect()
    }
}

fn close(point: &[f64], other: &[f64]) -> bool {
    point.iter().zip(other).all(|(a, b)| (a - b).abs() <= 2.0 * f64::EPSILON * b.abs())
}

impl From<Membership> for RegionMembership {
    fn from(membership: Membership) -> RegionMembership {
        RegionMembership { membership, chart: None }
    }
}

impl Region {
    /// The test of points that densities on this region apply.
    pub fn point_membership(&self) -> Result<RegionMembership, MembershipError> {
        Ok(match self.flat() {
            // Regions without volume that are no flat have no densities, but points.
            Ok(None) | Err(_) => self.membership()?.into(),
            Ok(Some(flat)) => {
                RegionMembership { membership: flat.region().membership()?, chart: Some(flat.chart().clone()) }
            }
        })
    }
}
