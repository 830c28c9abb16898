// A mirror names each bitmap of dead rows by a version: a new one where a row more is dead, the same where none is.
#include "delta_fixture.h"

namespace pgwarp::test
{
namespace
{

Tombstones dead_row(std::size_t row, std::size_t rows)
{
    Tombstones dead;
    dead.rows.resize((rows + 63) / 64);
    dead.rows[row / 64] |= std::uint64_t{1} << (row % 64);
    return dead;
}

TEST(EngineTombstones, HaveAVersionOfTheirOwn)
{
    Fresh fresh(Method::exact, Metric::l2, 200, 0);
    Mirror& mirror = *fresh.mirror;
    EXPECT_EQ(mirror.snapshot()->dead->rows_version, 0U);
    Tombstones nothing;
    nothing.rows.resize(4);
    mirror.add_tombstones(1, nothing);
    EXPECT_TRUE(mirror.snapshot()->dead->rows.empty());
    mirror.add_tombstones(1, dead_row(7, 200));
    const std::uint64_t first = mirror.snapshot()->dead->rows_version;
    EXPECT_GT(first, 0U);
    mirror.add_tombstones(2, dead_row(130, 200));
    const std::uint64_t second = mirror.snapshot()->dead->rows_version;
    EXPECT_GT(second, first);
    // Known tombstones, and tombstones of a log's entries, make no new bitmap.
    mirror.add_tombstones(3, dead_row(7, 200));
    Tombstones entries;
    entries.log_entries[0] = {5};
    mirror.add_tombstones(4, entries);
    EXPECT_EQ(mirror.snapshot()->dead->rows_version, second);
    EXPECT_EQ(mirror.snapshot()->tombstone_version, 4U);
}

TEST(EngineTombstones, OfTwoMirrorsAreNeverTheSame)
{
    Fresh one(Method::exact, Metric::l2, 100, 0);
    Fresh other(Method::exact, Metric::l2, 100, 0);
    one.mirror->add_tombstones(1, dead_row(7, 100));
    other.mirror->add_tombstones(1, dead_row(7, 100));
    EXPECT_NE(one.mirror->snapshot()->dead->rows_version, other.mirror->snapshot()->dead->rows_version);
}

TEST(EngineTombstones, OfPartsHaveVersionsToo)
{
    Fresh fresh(Method::exact, Metric::l2, 200, 400);
    Mirror& mirror = *fresh.mirror;
    fresh.append(mirror, 200, 600);
    mirror.add_part(fresh.pool, [](std::uint64_t) {});
    ASSERT_EQ(mirror.snapshot()->parts.size(), 1U);
    EXPECT_EQ(mirror.snapshot()->parts[0].dead_version, 0U);
    fresh.kill(mirror, {210}, 1);
    const std::uint64_t first = mirror.snapshot()->parts[0].dead_version;
    EXPECT_GT(first, 0U);
    mirror.add_tombstones(2, dead_row(3, 200));
    EXPECT_EQ(mirror.snapshot()->parts[0].dead_version, first);
    fresh.kill(mirror, {211}, 3);
    EXPECT_GT(mirror.snapshot()->parts[0].dead_version, first);
}

}  // namespace
}  // namespace pgwarp::test
