# SPDX-License-Identifier: Apache-2.0
"""Mutants of the kernel's source, compiled to PTX: one file for each row of the table.

    source_mutants.py NVCC ROOT OUTPUT_DIRECTORY STAMP DEPFILE [NVCC OPTION...]

A row is (name, (file, old text, new text)...). A row whose old text is not there exactly once is an error that names it:
the kernel has changed, and the row must follow.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

MMA, LOAD, STORE = 'blackwell/roles/mma.cuh', 'blackwell/roles/load.cuh', 'blackwell/roles/store.cuh'
SOFTMAX, CORRECTION = 'blackwell/roles/softmax.cuh', 'blackwell/roles/correction.cuh'
ROW = 'blackwell/row.cuh'

ROWS = [
    # Released too early.
    ('V is released one step early',
     (MMA, '      value(1, v, block == 1);\n      cta.bar.kv_empty.commit(v);\n',
      '      cta.bar.kv_empty.commit(v);\n      value(1, v, block == 1);\n')),
    ('K is released one step early',
     (MMA, '      score(1, k);\n      if (block == blocks - 1) cta.bar.q_empty.commit(1);\n      cta.bar.kv_empty.commit(k);\n',
      '      cta.bar.kv_empty.commit(k);\n      score(1, k);\n      if (block == blocks - 1) cta.bar.q_empty.commit(1);\n')),
    ('Q is released one step early',
     (MMA, '      score(0, k);\n      if (block == blocks - 1) cta.bar.q_empty.commit(0);\n',
      '      if (block == blocks - 1) cta.bar.q_empty.commit(0);\n      score(0, k);\n')),
    ('O is announced one step early',
     (MMA, '    value(1, last_v, blocks == 1);\n    cta.bar.o_ready.commit(1);\n',
      '    cta.bar.o_ready.commit(1);\n    value(1, last_v, blocks == 1);\n')),
    ('S is announced before it is computed',
     (MMA, '#pragma unroll\n    for (int step = 0; step < L::score_steps; ++step) {\n      ptx::tcgen05_mma_f16_ss',
      '    cta.bar.s_ready.commit(stage);\n#pragma unroll\n    for (int step = 0; step < L::score_steps; ++step) {\n      ptx::tcgen05_mma_f16_ss'),
     (MMA, '    }\n    cta.bar.s_ready.commit(stage);\n', '    }\n')),
    ('the message slot is released before it is read',
     (CORRECTION, '        const float factor = cta.scale_or_sum(stage, row);\n        cta.bar.softmax_corr_empty.arrive(stage);\n',
      '        cta.bar.softmax_corr_empty.arrive(stage);\n        const float factor = cta.scale_or_sum(stage, row);\n')),
    ('O is released before the epilogue has read it',
     (CORRECTION, '      normalise_o<config>(', '      cta.bar.p_o_rescale.arrive(stage);\n      normalise_o<config>('),
     (CORRECTION, '      cta.bar.p_o_rescale.arrive(stage);  // O is released for the next task\n', '')),
    ('O is released before it is rescaled',
     (CORRECTION, '        if (ptx::vote_sync_any(factor < 1.0f)) {',
      '        cta.bar.p_o_rescale.arrive(stage);\n        if (ptx::vote_sync_any(factor < 1.0f)) {'),
     (CORRECTION, '        ptx::tcgen05_fence_before_thread_sync();\n        cta.bar.p_o_rescale.arrive(stage);\n',
      '        ptx::tcgen05_fence_before_thread_sync();\n')),
    ('the O tile is returned before TMA has read it',
     (STORE, '    ptx::cp_async_bulk_wait_group_read<1>();\n    cta.bar.corr_epi_empty.arrive(0);\n',
      '    cta.bar.corr_epi_empty.arrive(0);\n    ptx::cp_async_bulk_wait_group_read<1>();\n')),
    ('half of P is handed over as three quarters',
     (SOFTMAX, '    store_chunks(0, chunks_before_tail);\n', '    store_chunks(0, chunks_before_tail - 1);\n'),
     (SOFTMAX, '    store_chunks(chunks_before_tail, chunks);\n', '    store_chunks(chunks_before_tail - 1, chunks);\n')),
    ('the value MMA takes seven eighths of P before the tail',
     (MMA, '    steps(0, L::value_steps_before_tail);\n', '    steps(0, L::value_steps_before_tail + 1);\n'),
     (MMA, '    steps(L::value_steps_before_tail, L::value_steps);\n', '    steps(L::value_steps_before_tail + 1, L::value_steps);\n')),
    ('the proxy fence comes after the arrival',
     (CORRECTION, '    ptx::fence_proxy_async_shared_cta();\n    cta.bar.corr_epi_full.arrive(stage);\n',
      '    cta.bar.corr_epi_full.arrive(stage);\n    ptx::fence_proxy_async_shared_cta();\n')),
    ('the proxy fence is in the thread that stores, not in those that wrote',
     (CORRECTION, '    ptx::fence_proxy_async_shared_cta();\n', ''),
     (STORE, '      cta.bar.corr_epi_full.wait(stage, phase);\n',
      '      cta.bar.corr_epi_full.wait(stage, phase);\n      ptx::fence_proxy_async_shared_cta();\n')),
    # Waited for too late.
    ('K is waited for one step late',
     (MMA, '      const int k = next_kv();\n      score(0, k);\n', '      score(0, kv.index);\n      const int k = next_kv();\n')),
    ('the tail of P is waited for one step late',
     (MMA, '    cta.bar.p_tail.wait(stage, p_phase);\n    ptx::tcgen05_fence_after_thread_sync();\n    steps(L::value_steps_before_tail, L::value_steps);\n',
      '    steps(L::value_steps_before_tail, L::value_steps);\n    cta.bar.p_tail.wait(stage, p_phase);\n    ptx::tcgen05_fence_after_thread_sync();\n')),
    ('the slot is waited for after its load',
     (LOAD, '      cta.bar.kv_empty.wait(kv.index, kv.phase);\n      cta.bar.kv_full', '      cta.bar.kv_full'),
     (LOAD, '      ptx::cp_async_bulk_tensor_load(tile, &tensor, coordinates, cta.bar.kv_full.address(kv.index));\n',
      '      ptx::cp_async_bulk_tensor_load(tile, &tensor, coordinates, cta.bar.kv_full.address(kv.index));\n      cta.bar.kv_empty.wait(kv.index, kv.phase);\n')),
    ('the epilogue reads O before the last MMA is waited for',
     (CORRECTION, '      cta.bar.o_ready.wait_warp(stage, o_phase);\n      ptx::tcgen05_fence_after_thread_sync();\n', ''),
     (CORRECTION, '      ptx::tcgen05_fence_before_thread_sync();\n      cta.bar.p_o_rescale.arrive(stage);  // O',
      '      cta.bar.o_ready.wait_warp(stage, o_phase);\n      ptx::tcgen05_fence_after_thread_sync();\n'
      '      ptx::tcgen05_fence_before_thread_sync();\n      cta.bar.p_o_rescale.arrive(stage);  // O')),
    # Rings and phases.
    ('the MMA driver has a ring of two', (MMA, 'PipelineState<config.kv_slots>::consumer()', 'PipelineState<config.kv_slots - 1>::consumer()')),
    ('the loader has a ring of two', (LOAD, 'PipelineState<config.kv_slots>::producer()', 'PipelineState<config.kv_slots - 1>::producer()')),
    ('a load goes into the next slot', (LOAD, 'cta.k_tile(kv.index)', 'cta.k_tile((kv.index + 1) % config.kv_slots)')),
    ('the value MMA reads the P of the other stage', (MMA, 'cta.p_tmem(stage)', 'cta.p_tmem(1 - stage)')),
    ('P is stored in the other stage', (SOFTMAX, 'cta.of_row(row).p_tmem(stage)', 'cta.of_row(row).p_tmem(1 - stage)')),
    ('the message goes into the slot of the other stage', (SOFTMAX, 'cta.scale_or_sum(stage, row) = factor;', 'cta.scale_or_sum(1 - stage, row) = factor;')),
    ('the phase of Q is not carried to the next task, load', (LOAD, '    q_phase ^= 1;\n', '')),
    ('the phase of Q is not carried to the next task, mma', (MMA, '    q_phase ^= 1;\n', '')),
    ('the phase of P is not carried to the next task', (MMA, '    cta.bar.kv_empty.commit(last_v);\n    p_phase ^= 1;\n', '    cta.bar.kv_empty.commit(last_v);\n')),
    ('the phase of S starts afresh in each task', (SOFTMAX, '    RowState state;\n', '    RowState state;\n    s_phase = 0;\n')),
    ('the phase of o_ready is not carried to the next task', (CORRECTION, '      o_phase ^= 1;\n', '')),
    ('the phase of the O tile is not carried to the next task', (CORRECTION, '    epi_phase ^= 1;\n', '')),
    ('a task without blocks turns the phase of o_ready', (CORRECTION, '      o_phase ^= 1;\n    }\n', '    }\n    o_phase ^= 1;\n')),
    # Values.
    ('O is not rescaled when it must be', (CORRECTION, 'vote_sync_any(factor < 1.0f)', 'vote_sync_any(factor < 0.0f)')),
    ('O is rescaled by the factor of the other stage', (CORRECTION, 'const float factor = cta.scale_or_sum(stage, row);', 'const float factor = cta.scale_or_sum(1 - stage, row);')),
    ('the maximum moves and the factor stays 1', (ROW, 'maximum == -CUDART_INF_F ? 1.0f : ptx::ex2_approx_ftz(moved_log2)', '1.0f')),
    ('the maximum never moves', (ROW, 'return !(moved_log2 >= -kRescaleThreshold);', 'return moved_log2 == -CUDART_INF_F;')),
    ('the sum is not rescaled', (ROW, 'sum = sum * factor + (low + high);', 'sum = sum + (low + high);')),
    ('the exponent uses the maximum before the block',
     (SOFTMAX, '      offset = state.exponent_offset(scale_log2);\n', '')),
    ('large maxima are not subtracted before the scores are scaled', (SOFTMAX, 'ptx::vote_sync_any(is_large(offset))', 'ptx::vote_sync_any(false)')),
    ('large maxima are subtracted in the block that they come with alone', (SOFTMAX, 'RowState::is_taken(moved_log2) || is_large(offset)', 'RowState::is_taken(moved_log2)')),
    ('a large maximum is subtracted twice', (ROW, '  if (large) offset = maximum == CUDART_INF_F ? CUDART_NAN_F : 0.0f;\n', '')),
    ('a large maximum is subtracted from all rows of the warp', (ROW, 'large ? -maximum : 0.0f', '-maximum')),
    ('the mask comes after exp2',
     (SOFTMAX, '    if constexpr (decltype(masked)::value) mask_row<Mask<config.mask>::bounded_below>(s, visible, block * config.block_keys);\n', ''),
     (SOFTMAX, '    state.add<0, chunks_before_tail>(s, factor);\n', '    if constexpr (decltype(masked)::value) mask_row<Mask<config.mask>::bounded_below>(s, visible, block * config.block_keys);\n    state.add<0, chunks_before_tail>(s, factor);\n')),
    ('the maximum is taken before the mask',
     (SOFTMAX, '    if constexpr (decltype(masked)::value) mask_row<Mask<config.mask>::bounded_below>(s, visible, block * config.block_keys);\n', ''),
     (SOFTMAX, '    if (later) {\n', '    if constexpr (decltype(masked)::value) mask_row<Mask<config.mask>::bounded_below>(s, visible, block * config.block_keys);\n    if (later) {\n')),
    ('O is normalised with the sum before the last block', (SOFTMAX, '    state.add<chunks_before_tail, chunks>(s, 1.0f);\n', '    if (block > 0) state.add<chunks_before_tail, chunks>(s, 1.0f);\n')),
    ('the first value MMA of a task accumulates', (MMA, '!first_block || step > 0', 'true')),
    ('the first value MMA of a later block does not accumulate', (MMA, 'value(0, v, block == 1)', 'value(0, v, true)')),
    ('the tail mask keeps one key too many', ('mask_columns.cuh', 'end < 32 ? 32 - end : 0', 'end < 31 ? 31 - end : 0')),
    ('the causal diagonal is off by one', ('mask.h', 'return {0, seq_kv - behind};', 'return {0, seq_kv - behind + 1};')),
    ('the causal mask is aligned to the top left', ('mask.h', 'return {0, seq_kv - behind};', 'return {0, seq_q - behind};')),
    ('one block too few is masked', ('mask.h', 'r.unmasked_end = end > 0 ? end / block_keys : 0;', 'r.unmasked_end = end > 0 ? end / block_keys + 1 : 0;')),
    ('one block too few is visited', ('mask.h', 'end / block_keys + (end % block_keys != 0 ? 1 : 0)', 'end / block_keys')),
    ('rows of one position are taken for rows of one head', (SOFTMAX, 'task.row_position(stage, row)', 'task.position(stage) + (row >> 1)')),
    ('LSE leaves out the scale', (CORRECTION, 'maximum * params.scale + logf(sum)', 'maximum + logf(sum)')),
]


def mutate(folder, name, edits):
    for file, old, new in edits:
        path = os.path.join(folder, 'asm/attention', file)
        with open(path) as source:
            text = source.read()
        if text.count(old) != 1:
            raise ValueError('source mutant "%s": asm/attention/%s holds this %d times, and must once:\n%s'
                             % (name, file, text.count(old), old))
        with open(path, 'w') as source:
            source.write(text.replace(old, new))


def build(nvcc, options, root, output, row):
    name, edits = row[0], row[1:]
    folder = os.path.join(output, 'tree', name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(root, 'asm'), os.path.join(folder, 'asm'))
    mutate(folder, name, edits)
    # The tests launch two of the entries.
    entries = os.path.join(folder, 'asm/attention/specialisations.h')
    with open(entries) as source:
        text = re.sub(r'^  ROW\((?!fa4_forward_f16_\w+, +f16, +\w+, +128, 128\)).*\n', '', source.read(), flags=re.M)
    with open(entries, 'w') as source:
        source.write(re.sub(r'\) *\\\n(?!  ROW)', ')\n', text))
    main = os.path.join(folder, 'asm/attention/blackwell/attention.cu')
    ptx = os.path.join(output, name + '.ptx')
    result = subprocess.run([nvcc, '-ptx', '-o', ptx] + options + [main], capture_output=True, text=True)
    if result.returncode != 0:
        raise ValueError('source mutant "%s" does not compile:\n%s' % (name, result.stderr))


def main():
    nvcc, root, output, stamp, depfile = sys.argv[1:6]
    options = sys.argv[6:]
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    if len({row[0] for row in ROWS}) != len(ROWS):
        raise ValueError('two source mutants have the same name')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(build, nvcc, options, root, output, row) for row in ROWS]:
            done.result()
    shutil.rmtree(os.path.join(output, 'tree'))
    sources = glob.glob(os.path.join(root, 'asm/**/*.h'), recursive=True) + glob.glob(os.path.join(root, 'asm/**/*.cu*'), recursive=True)
    with open(depfile, 'w') as file:
        file.write('%s: %s\n' % (stamp, ' '.join(sources)))
    with open(stamp, 'w') as file:
        file.write('%d source mutants\n' % len(ROWS))


try:
    main()
except ValueError as error:
    sys.exit(str(error))
