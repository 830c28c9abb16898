// Lists of rows as they are sent to the device. Lists that share memory, such as stretches of one order of the rows,
// are sent once. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda::rows
{

// A part of the list of a query.
struct ListPiece {
    std::uint32_t query;
    std::uint32_t first;  // place among the rows that are sent
    std::uint32_t count;
};

class ListLayout
{
public:
    // The memory of the lists outlives this.
    ListLayout(std::span<const RowList> lists, std::uint32_t piece_rows);

    std::size_t sent_rows() const { return sent_rows_; }
    // Query after query.
    std::span<const ListPiece> pieces() const { return pieces_; }
    // The number of the first piece of each query, and the number of all pieces.
    std::span<const std::uint32_t> first_pieces() const { return first_pieces_; }
    // Writes the rows that are sent.
    void copy_rows(std::uint32_t* to, ThreadPool& pool) const;

private:
    void add_stretches(std::span<const RowList> lists);
    std::uint32_t place_of(const std::uint32_t* row) const;

    std::vector<RowList> stretches_;     // of memory that lists cover, ascending, apart from each other
    std::vector<std::uint32_t> places_;  // of the first row of each stretch
    std::size_t sent_rows_ = 0;
    std::vector<ListPiece> pieces_;
    std::vector<std::uint32_t> first_pieces_;
};

}  // namespace pgwarp::cuda::rows
