// Tombstones as exact searches read them.
#pragma once

#include "device/tombstones.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// Null: no row is dead.
struct DeadRows {
    const std::uint64_t* bits = nullptr;  // device
    const float* penalties = nullptr;     // device: those of the rows, dead ones marked
};

// What of a bitmap is kept on the device.
struct ExactTombstones {
    DeadBits bits;
    DeviceArray<float> penalties;

    DeadRows view() const { return {bits.words.data(), penalties.data()}; }
};

// stream: outlives what is made. Waits.
inline ExactTombstones make_tombstones(RowBitmap dead, Context& context, const ExactRows& rows,
                                       const Context::Lease& stream)
{
    ExactTombstones made;
    made.bits = send_dead_rows(dead, rows.rows, context.pool(), stream);
    made.penalties = DeviceArray<float>(context.pool(), rows.scored.padded_positions, "penalties of dead rows", stream);
    mark_dead(rows.scored, made.bits.words.data(), made.penalties.data(), stream);
    stream.stream().synchronize();
    return made;
}

}  // namespace pgwarp::cuda
