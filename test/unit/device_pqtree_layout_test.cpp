// The layout of a product quantization tree on the device (pqtree/layout.h).
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "pqtree/layout.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda::pqtree;

TEST(PqtreeCodes, GiveEachLineAndPlaceAByteOfItsOwn)
{
    for (const std::uint32_t parts : {1U, 7U, 8U, 16U, 50U}) {
        const std::uint32_t bytes = code_groups(parts) * group_bytes;
        std::set<std::uint32_t> used;
        for (std::uint32_t part = 0; part < parts; ++part) {
            used.insert(line_offset(part));
            used.insert(line_offset(part) + group_parts);
            EXPECT_LT(line_offset(part) + group_parts, bytes);
        }
        EXPECT_EQ(used.size(), 2 * parts);
    }
}

TEST(PqtreeCodes, AreSharedByAPowerOfTwoOfLanes)
{
    for (std::uint32_t groups = 1; groups < 40; ++groups) {
        const std::uint32_t lanes = lanes_of_row(groups);
        EXPECT_LE(lanes, groups);
        EXPECT_EQ(lanes & (lanes - 1), 0U);
        EXPECT_EQ(32 % lanes, 0U);
    }
}

// A tile always fits behind the keys that a selection keeps (line_scan.cuh).
TEST(PqtreeKeys, HaveRoomForATile)
{
    for (std::uint32_t wanted = 1; wanted <= most_proposed; wanted += 13) {
        for (const std::uint32_t tile : {tile_rows, shared_tile_rows}) {
            const std::uint32_t room = keys_of(wanted, tile);
            EXPECT_GE(room, kept_of(wanted) + tile);
            EXPECT_GE(room, power_of_two_above(kept_of(wanted)));
        }
    }
}

TEST(PqtreeLayout, HasArraysBehindEachOther)
{
    for (const std::uint32_t parts : {1U, 2U, 4U}) {
        for (const std::uint32_t ranks : {8U, 144U, 1024U}) {
            const BlockShape shape{parts, 2, 128, 64, ranks, 1024, 200};
            const BlockLayout at = BlockLayout::of(shape);
            const std::vector<std::uint32_t> begins{at.terms,       at.keys,   at.bins,   at.scratch, at.query,
                                                    at.part_scores, at.scores, at.leaves, at.offsets, at.bytes};
            for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
                EXPECT_LT(begins[i], begins[i + 1]);
                EXPECT_EQ(begins[i] % 16, 0U);
            }
            EXPECT_GE(at.bins - at.keys, parts * ranks * 8);
            EXPECT_GE(at.line_scores, shape.padded_level1);
        }
    }
    // Four searches of 16 line parts share a multiprocessor of 228 KB, of which each takes 1 KB beside this.
    EXPECT_LE(BlockLayout::of({2, 2, 128, 64, 256, 1344, 120}).bytes, 57000U);
}

}  // namespace
}  // namespace pgwarp::test
