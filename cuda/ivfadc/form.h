// The parts of an ivfadc mirror that lie on the device. A mirror takes the best form that the device has room for.
//
//   whole    everything lies on the device; where rows keep vectors, they are scanned as halves;
//   ranked   (refine = full) halves are scanned on the device; the vectors lie in page-locked host memory and are read
//            over the bus for the rows that are ranked;
//   codes    product codes or bytes are scanned on the device; the half or full vectors lie in page-locked host memory.
//            Where the index has no codes, bytes are made from the vectors while it is loaded.
//
// Values are the same in all forms; answers differ only by the candidates that the scan proposes.
#pragma once

#include <cstdint>
#include <vector>

#include "ivfadc/layout.h"
#include "methods/ivfadc/ivfadc.h"

namespace pgwarp::cuda::ivfadc
{

enum class Form : std::uint8_t { whole, ranked, codes };

struct MirrorSize {
    std::uint64_t rows = 0;
    std::uint64_t lists = 0;
    std::uint64_t dimensions = 0;
};

// The forms that can serve an index with these options, the best first. Never empty.
inline std::vector<Form> forms_of(const IvfOptions& options)
{
    std::vector<Form> forms{Form::whole};
    if (options.keeps_full() && !options.byte_codes) forms.push_back(Form::ranked);
    if (!options.keeps_codes() || options.refine != IvfRefine::none) forms.push_back(Form::codes);
    return forms;
}

// Whether bytes are scanned: where the index has them, and in place of half vectors that lie on the host.
inline bool scans_bytes(const IvfOptions& options, Form form)
{
    return options.byte_codes || (!options.product_codes && form == Form::codes);
}

// Whether product codes are scanned.
inline bool scans_codes(const IvfOptions& options, Form form)
{
    return options.product_codes && (form == Form::codes || options.refine == IvfRefine::none);
}

// Whether half vectors lie on the device, to be scanned or, beside bytes, to rank.
inline bool keeps_halves(const IvfOptions& options, Form form)
{
    if (scans_bytes(options, form)) return form == Form::whole && options.refine == IvfRefine::half;
    return !scans_codes(options, form);
}

// The most positions of `rows` rows in `lists` lists.
inline std::uint64_t most_positions(std::uint64_t rows, std::uint64_t lists)
{
    const std::uint64_t used = lists < rows ? lists : rows;
    return rows + used * (group_rows - 1);
}

// The most device memory that the mirror takes: its large arrays, and the small ones beside them.
inline std::uint64_t device_bytes_of(const IvfOptions& options, const MirrorSize& size, Form form)
{
    const std::uint64_t positions = most_positions(size.rows, size.lists);
    const std::uint64_t stride = half_stride(static_cast<std::uint32_t>(size.dimensions));
    // Rows and terms of positions, and positions of rows while loading.
    std::uint64_t bytes = positions * 8 + size.rows * 4 + size.lists * (8 + size.dimensions * 4 + stride * 2 + 4);
    if (scans_codes(options, form)) {
        const std::uint64_t groups = (options.subquantizers + group_codes - 1) / group_codes;
        bytes += positions * groups * group_codes + 256 * size.dimensions * 6;
        if (options.opq) bytes += size.dimensions * size.dimensions * 4 + size.lists * size.dimensions * 4;
    }
    if (scans_bytes(options, form)) bytes += positions * (byte_stride(static_cast<std::uint32_t>(size.dimensions)) + 4);
    if (keeps_halves(options, form)) bytes += positions * stride * 2;
    if (form == Form::whole && options.keeps_full()) bytes += size.rows * size.dimensions * 4;
    return bytes;
}

}  // namespace pgwarp::cuda::ivfadc
